"""A configuration is checked as a whole before anything starts, and errors show nothing of it."""

from __future__ import annotations

import json
import math
import socket
import ssl
import stat
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from querycloak.cli import main
from querycloak.clients.crowd import config
from querycloak.clients.crowd.config import PeerSettings
from querycloak.clients.crowd.state import SCHEMA, State
from querycloak.clients.crowd.tls import context, fingerprint, new_identity, read_certificate
from querycloak.errors import QueryCloakError, Refused

pytestmark = pytest.mark.sign

ENGINE = 'engine = "http://127.0.0.1:8000/search?q={query}"'
FRIEND = '[[friends]]\nname = "ada"\ncertificate = "ada/certificate.pem"\naddress = "127.0.0.1:7002"\n'
GOOD = f"port = 7001\n{ENGINE}\n{FRIEND}"


@pytest.fixture
def folder(tmp_path):
    new_identity(tmp_path)
    for name in ("ada", "eve"):
        new_identity(tmp_path / name)
    return tmp_path


def read(folder, text):
    (folder / "crowd.toml").write_text(text, "utf-8")
    return config.read(folder / "crowd.toml")


def test_defaults_and_what_is_given(folder):
    found = read(folder, GOOD + "[protocol]\nrenew = 50\nrate = 5\n")
    assert (found.host.listen, found.host.port, found.protocol.renew) == ("127.0.0.1", 7001, 50)
    assert found.protocol.penalty == 0.03
    assert found.friends[0].address == ("127.0.0.1", 7002)
    assert found.friends[0].certificate == read_certificate(folder / "ada/certificate.pem", "")


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("port = ?\n", 3, "not TOML (line 1)"),
        (ENGINE + "\n" + FRIEND, 2, "lacks `port`"),
        ("port = 7001\n" + FRIEND, 2, "lacks `engine`"),
        (f"port = 7001\n{ENGINE}\n", 2, "at least one friend"),
        (GOOD.replace("7001", '"7001"'), 2, "`port` must be int"),
        (GOOD.replace("7001", "70010"), 2, "at most 65535"),
        (GOOD + "[protocol]\npenalti = 1\n", 2, "did you mean `penalty`?"),
        (GOOD + "[protocol]\npenalty = 2\n", 2, "`penalty` must be float"),
        (GOOD + "[protocol]\nengine_within = 7\n", 2, "half of `answer_within`"),
        (GOOD.replace("{query}", ""), 2, "with `{query}` in it"),
        (GOOD.replace("?q={query}", "#q={query}"), 2, "with `{query}` in it"),
        (GOOD.replace("?q={query}", "?q=#{query}"), 2, "with `{query}` in it"),
        (GOOD.replace("127.0.0.1:8000", "{query}.example").replace("?q={query}", ""), 2, "http or https"),
        (GOOD.replace("http://127", "ftp://127"), 2, "http or https"),
        (GOOD.replace("127.0.0.1:8000", "planted:secret@host"), 2, "http or https"),
        (GOOD.replace("search?q=", "search\\nX: y?q="), 2, "http or https"),
        (GOOD.replace("127.0.0.1:7002", "nowhere"), 2, "HOST:PORT"),
        (GOOD.replace('"ada"', '"ada planted"'), 2, "`name` of a friend must be"),
        (GOOD.replace("ada/", "planted/"), 2, "certificate of friend 1 cannot be read"),
        (GOOD.replace("ada/certificate", "ada/key"), 2, "not one certificate in PEM form"),
        (GOOD.replace("ada/certificate", "certificate"), 2, "is the peer itself"),
        (GOOD + FRIEND, 2, "the same certificate or the same name"),
        (GOOD + FRIEND.replace("certificate.pem", "certificate.pem\\u0000"), 2, "certificate"),
        ("friends = 5\n" + f"port = 7001\n{ENGINE}\n", 3, "must be tables"),
        (GOOD.replace('name = "ada"\n', ""), 2, "of friend 1 lacks `name`"),
        ("protocol = 1\n" + GOOD, 3, "`protocol` must be a table"),
        ("manners = 1\n" + GOOD, 3, "`manners` must be a table"),
        (GOOD + "[manners]\nrenew = 1\n[protocol]\nrenew = 2\n", 2, "the old name of `[protocol]`"),
    ],
)
def test_faults_are_told_without_showing_what_is_in_the_file(folder, text, status, said):
    with pytest.raises(QueryCloakError) as caught:
        read(folder, text)
    assert caught.value.exit_status == status
    assert said in str(caught.value)
    assert "planted" not in str(caught.value)
    done = CliRunner().invoke(main, ["crowd", "peer", str(folder / "crowd.toml")])
    assert done.exit_code == status


def test_a_missing_or_unreadable_configuration(folder):
    assert CliRunner().invoke(main, ["crowd", "peer", str(folder / "none.toml")]).exit_code == 2
    assert CliRunner().invoke(main, ["crowd", "peer"]).exit_code == 2
    (folder / "crowd.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(QueryCloakError, match="not UTF-8"):
        config.read(folder / "crowd.toml")


def test_the_endpoint_is_for_this_machine_only(folder):
    (folder / "crowd.toml").write_text(GOOD, "utf-8")
    for door, said in (
        ("nonsense", "HOST:PORT"),
        ("0.0.0.0:8686", "this machine only"),
        ("192.0.2.1:8686", "this machine only"),
        ("host.example:8686", "this machine only"),
    ):
        done = CliRunner().invoke(main, ["crowd", "peer", str(folder / "crowd.toml"), "--http", door])
        assert done.exit_code == 2
        assert said in done.stderr


def test_a_port_that_is_taken_is_told(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (folder / "crowd.toml").write_text(GOOD.replace("7001", str(port)), "utf-8")
        done = CliRunner().invoke(main, ["crowd", "peer", str(folder / "crowd.toml")])
    assert done.exit_code == 2
    assert "cannot listen there" in done.stderr


def test_a_damaged_state_is_told(folder):
    (folder / "crowd.toml").write_text(GOOD, "utf-8")
    (folder / "state").mkdir()
    for damage in ("{", "[]", "[" * 100_000, '{"schema": "other"}'):
        (folder / "state" / "member.json").write_text(damage)
        done = CliRunner().invoke(main, ["crowd", "peer", str(folder / "crowd.toml")])
        assert done.exit_code == 3
        assert "move it away" in done.stderr


@pytest.mark.parametrize(
    "damage",
    [
        {"friends": 5},
        {"friends": {"f": 5}},
        {"friends": {"f": {"trust": "1"}}},
        {"friends": {"f": {"trust": math.nan}}},
        {"friends": {"f": {"trust": 1.5}}},
        {"friends": {"f": {"own": 1.5}}},
        {"friends": {"f": {"friends": 10**400}}},
        {"vector": 5},
        {"vector": [0.5, 0.5]},
        {"vector": [0.5, 0.5, "0.5"]},
        {"vector": [0.5, 0.5, 1.0]},
        {"vector": [0.5, 0.5, math.inf]},
        {"searched": "5"},
        {"searched": -1},
        {"counts": [["asked", 1]]},
        {"counts": {"asked": None}},
        {"counts": {"asked": True}},
    ],
    ids=str,
)
def test_a_state_that_no_peer_has_written_is_told_before_it_starts(folder, damage):
    (folder / "crowd.toml").write_text(GOOD, "utf-8")
    (folder / "state").mkdir()
    (folder / "state" / "member.json").write_text(json.dumps({"schema": SCHEMA, **damage}))
    done = CliRunner().invoke(main, ["crowd", "peer", str(folder / "crowd.toml")])
    assert done.exit_code == 3
    assert "is damaged" in done.stderr
    assert "move it away" in done.stderr


def test_a_state_of_the_first_version_is_read_and_its_hashes_are_deleted(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    file, key = folder / "member.json", folder / "key"
    key.write_text("planted key")
    friends = {"ab": {"trust": 0.5, "friends": 2, "own": 1, "passed": 2}}
    counts = {"asked of her own": 3, "nobody waits": 1, "too many": 2, "searched": 7}
    exposure = {"own": {"planted": 1}, "submitted": {}, "beyond": 0}
    first = {"schema": "querycloak/crowd-member/1", "friends": friends, "vector": [0.1, 0.2, 0.3]}
    file.write_text(json.dumps(first | {"searched": 7, "counts": counts, "exposure": exposure}))
    state = State(folder)
    stored = state.read()
    assert stored["friends"] == friends
    assert (stored["vector"], stored["searched"]) == ([0.1, 0.2, 0.3], 7)
    assert stored["counts"] == {
        "queries_sent_own": 3,
        "answers_dropped": 1,
        "rate_limited": 2,
        "searches_started": 7,
    }
    assert "planted" not in file.read_text()
    assert not key.exists()
    assert state.read() == {"schema": SCHEMA, **stored}
    state.close()


def test_the_old_name_of_the_table_is_read(folder):
    assert read(folder, GOOD + "[manners]\nrenew = 50\n").protocol.renew == 50


@pytest.mark.parametrize("name", ["key.pem", "certificate.pem"])
def test_a_folder_with_half_an_identity_stays_as_it_is(tmp_path, name):
    (tmp_path / name).write_text("half")
    with pytest.raises(Refused, match="contains an identity already"):
        new_identity(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "half"


def test_an_identity_is_private_nameless_and_never_overwritten(folder):
    for name in ("key.pem", "certificate.pem"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    with pytest.raises(Refused):
        new_identity(folder)
    one, other = (read_certificate(folder / name / "certificate.pem", "") for name in ("ada", "eve"))
    assert one != other
    done = CliRunner().invoke(main, ["crowd", "peer", "--new-identity", str(folder / "new")])
    assert done.exit_code == 0
    assert fingerprint(read_certificate(folder / "new" / "certificate.pem", "")) in done.stderr


def shake_hands(folder, server, client, server_trusts, client_trusts):
    """Do a handshake in memory; give the certificates that both sides have seen."""

    def files(name):
        return folder / name / "certificate.pem", folder / name / "key.pem"

    def trusted(names):
        return [read_certificate(folder / name / "certificate.pem", "") for name in names]

    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = context(ssl.PROTOCOL_TLS_SERVER, *files(server), trusted(server_trusts))
    other = context(ssl.PROTOCOL_TLS_CLIENT, *files(client), trusted(client_trusts))
    sides = [one.wrap_bio(up, down, server_side=True), other.wrap_bio(down, up)]
    for _ in range(5):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert {side.version() for side in sides} == {"TLSv1.3"}
    return [side.getpeercert(binary_form=True) for side in sides]


def test_friends_know_each_other_by_their_certificates(folder):
    new_identity(folder / "bob")
    seen = shake_hands(folder, "ada", "bob", ["eve", "bob"], ["ada", "eve"])
    assert seen == [read_certificate(folder / name / "certificate.pem", "") for name in ("bob", "ada")]


@pytest.mark.parametrize(("server_trusts", "client_trusts"), [(["eve"], ["ada"]), (["bob"], ["eve"])])
def test_who_is_not_named_is_refused_on_either_side(folder, server_trusts, client_trusts):
    new_identity(folder / "bob")
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands(folder, "ada", "bob", server_trusts, client_trusts)


def test_every_setting_is_on_the_page():
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "crowd-peer.md").read_text("utf-8")
    rows = page.partition("## Settings")[2]
    for kind in (config.HostSettings, config.FriendEntry, PeerSettings):
        for declared in fields(kind):
            assert f"`{declared.name}`" in rows, declared.name


def test_who_shows_no_certificate_is_refused(folder):
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    files = (folder / "ada" / "certificate.pem", folder / "ada" / "key.pem")
    trusted = [read_certificate(folder / "eve" / "certificate.pem", "")]
    server = context(ssl.PROTOCOL_TLS_SERVER, *files, trusted).wrap_bio(up, down, server_side=True)
    nameless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nameless.check_hostname, nameless.verify_mode = False, ssl.CERT_NONE
    client = nameless.wrap_bio(down, up)
    for side in (client, server):
        with pytest.raises(ssl.SSLWantReadError):
            side.do_handshake()
    client.do_handshake()
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        server.do_handshake()
