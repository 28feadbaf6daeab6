"""Locks of a running service: TLS, what SIGHUP takes over, what it refuses, and what others can see of it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from querycloak import errors
from querycloak.cli.serve import command
from querycloak.client import Client
from querycloak.service.web.auth import add_token
from tests.support.service_process import LiveService

FLAGS = ("--seed", "1", "-s", "k=3")
ONE = [{"user": "a", "query": "b"}]


def certificate(folder: Path, number: int) -> ssl.SSLContext:
    """Make up a certificate for loopback; give what a client needs to trust it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "made up")])
    names = [x509.IPAddress(ip_address("127.0.0.1"))]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), number)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "tls.pem").write_bytes(made.public_bytes(pem))
    (folder / "tls.key").write_bytes(key.private_bytes(pem, *plain))
    return ssl.create_default_context(cafile=str(folder / "tls.pem"))


def ready_to_wait(live: LiveService) -> Callable[[int], list[dict[str, Any]]]:
    """Give a function that waits until so many lines more are in the log, and gives them."""
    known = len(live.log().splitlines())

    def more(many: int) -> list[dict[str, Any]]:
        deadline = time.monotonic() + 30
        while len(lines := live.log().splitlines()[known:]) < many and time.monotonic() < deadline:
            time.sleep(0.05)
        return [json.loads(line) for line in lines]

    return more


def hang_up(live: LiveService, many: int) -> list[dict[str, Any]]:
    """Send SIGHUP; give what the log says then."""
    more = ready_to_wait(live)
    os.kill(live.process, signal.SIGHUP)
    return more(many)


def hello(live: LiveService, context: ssl.SSLContext) -> tuple[str | None, int]:
    """Shake hands; give the version spoken and the number of the certificate."""
    from cryptography import x509

    host, _, port = live.address.removeprefix("https://").partition(":")
    plain = socket.create_connection((host, int(port)), 30)
    with plain, context.wrap_socket(plain, server_hostname=host) as secure:
        shown = secure.getpeercert(binary_form=True)
        assert shown is not None
        return secure.version(), x509.load_der_x509_certificate(shown).serial_number


def health_check(live: LiveService) -> int:
    """Run the container's health check; return its status."""
    text = (Path(__file__).parents[3] / "deploy" / "Containerfile").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("HEALTHCHECK")]
    command = json.loads(line[line.index("[") :])
    code = command[-1].replace("8484", live.address.rpartition(":")[2])
    return subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode


def test_tls_with_a_certificate_that_is_renewed(tmp_path: Path) -> None:
    trusted = certificate(tmp_path, 1)
    files = {"tls_certificate": tmp_path / "tls.pem", "tls_key": tmp_path / "tls.key"}
    flags = [text for name, path in files.items() for text in ("-o", f"{name}={path}")]
    with LiveService(tmp_path / "state", *FLAGS, *flags) as live:
        assert live.address.startswith("https://")
        with Client(live.address, context=trusted) as client:
            assert client.send(ONE).accepted == 1
        with Client(live.address, patience=0) as wary, pytest.raises(errors.UsageError, match="not trusted"):
            wary.status()
        assert hello(live, trusted) == ("TLSv1.3", 1)
        assert health_check(live) == 0
        trusted.maximum_version = ssl.TLSVersion.TLSv1_2
        assert hello(live, trusted) == ("TLSv1.2", 1)
        _old_versions_are_refused(live, tmp_path)
        plain = live.address.replace("https", "http")
        with Client(plain, patience=0) as naive, pytest.raises(errors.Unavailable):
            naive.status()
        renewed = certificate(tmp_path, 2)
        assert hang_up(live, 1)[-1]["event"] == "reloaded"
        assert hello(live, renewed) == ("TLSv1.3", 2)
        (tmp_path / "tls.key").write_text("broken")
        fault, last = hang_up(live, 2)
        assert (fault["event"], fault["code"], last["event"]) == ("not reloaded", "usage", "reloaded")
        assert "they are not PEM, or not a pair" in fault["trouble"]
        assert hello(live, renewed) == ("TLSv1.3", 2)


def _old_versions_are_refused(live: LiveService, folder: Path) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        hello(live, old)


def test_sighup_takes_over_what_is_safe_and_names_the_rest(tmp_path: Path) -> None:
    config, tokens = tmp_path / "serve.toml", tmp_path / "tokens"
    token = add_token(tokens, "first", "admin")
    base = f'tokens = "{tokens}"\nclassify = false\n'
    config.write_text(base)
    live = LiveService(tmp_path / "state", *FLAGS, "--config", str(config))
    with live, Client(live.address, token, patience=0) as client:
        assert client.send(ONE * 100).accepted == 100
        config.write_text(base + "rate = 0.001\nbody_bytes = 2000\nretry_seconds = 5\n[settings]\nshards = 2")
        told = hang_up(live, 5)
        assert [line["setting"] for line in told if line["event"] == "reloaded" and "setting" in line] == [
            "body_bytes",
            "rate",
        ]
        refused = [line for line in told if line["event"] == "not reloaded"]
        assert [(line["setting"], line["trouble"]) for line in refused] == [
            ("retry_seconds", "needs a restart"),
            ("methods", "needs a restart"),
        ]
        with pytest.raises(errors.TooLarge):
            client.send(ONE * 100)
        client.send(ONE * 5)  # granted since the bucket is full; it is full again after more than an hour
        with pytest.raises(errors.Busy):
            client.send(ONE * 5)
        _tokens_are_read_again(live, tokens, client)
        config.write_text("port = 'planted")
        assert hang_up(live, 1)[-1]["code"] == "usage"
        config.write_text(base + "backlog = 0\nrate = 99")
        assert hang_up(live, 1)[-1]["code"] == "parameter"  # all or nothing
        with pytest.raises(errors.Busy):
            client.send(ONE * 50 + ONE * 5)


def _tokens_are_read_again(live: LiveService, path: Path, client: Client) -> None:
    second = add_token(path, "second", "read")
    with Client(live.address, second, patience=0) as other:
        with pytest.raises(errors.UnknownToken):
            other.status()
        hang_up(live, 1)
        other.status()
        lines = path.read_text().splitlines()
        path.write_text(lines[0] + "\n")
        hang_up(live, 1)
        with pytest.raises(errors.UnknownToken):
            other.status()
        client.status()


def test_no_secret_stands_in_the_list_of_processes(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    token = add_token(tokens, "a", "admin")
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("planted-key-" * 4)
    with LiveService(
        tmp_path / "state", *FLAGS, "-o", f"tokens={tokens}", "-o", f"state_key={key}", headers={"x": "y"}
    ) as live:
        shown = Path(f"/proc/{live.process}/cmdline").read_bytes()
        assert b"serve" in shown
        assert token.encode() not in shown
        assert b"planted" not in shown


def test_the_example_at_the_end_of_the_help_runs(tmp_path: Path) -> None:
    example = shlex.split(
        (command.help or "").strip().splitlines()[-1].strip().removeprefix("Example: querycloak")
    )
    words = [sys.executable, "-m", "querycloak", *example, "--port", "0", "--state", str(tmp_path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        said = next(line for line in started.stderr if not line.startswith("{"))
        started.terminate()
        started.stderr.read()
        assert started.wait(60) == 0
    assert said.startswith("listening on http://127.0.0.1:")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_without_tokens_other_addresses_are_refused(tmp_path: Path, host: str) -> None:
    words = [sys.executable, "-m", "querycloak", "serve", "--host", host, "--state", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "listens on loopback only" in done.stderr
