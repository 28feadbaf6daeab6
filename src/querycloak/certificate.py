"""The certificate of a release: a public part that travels with it, and a private part that does not."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from querycloak._version import __version__
from querycloak.errors import DataError, MissingExtra, UsageError
from querycloak.guarantee import Finding, Guarantee, verdict_of
from querycloak.keys import Secret

SCHEMA = "querycloak/certificate/2"
#: Versions of the schema that can be read.
VERSIONS = (1, 2)
Certificate = dict[str, Any]


def path_of(release: Path) -> Path:
    """Return where the certificate of a release lies."""
    return release.with_name(release.name + ".certificate.json")


def private_path_of(release: Path) -> Path:
    """Return where the private part lies, which must not travel with the release."""
    return release.with_name(release.name + ".certificate.private.json")


def method_part(
    method: str,
    settings: dict[str, Any],
    promise: Guarantee,
    sentences: Mapping[str, list[str]],
    findings: list[Finding],
) -> dict[str, Any]:
    """Describe one method: guarantee with the checks of each sentence, limits, and what the audit found."""
    return {
        "method": method,
        "settings": settings,
        "promise": promise.statement,
        "sentences": [{"text": text, "checks": checks} for text, checks in sentences.items()],
        "does_not_protect_against": list(promise.does_not_protect_against),
        "facts": promise.facts,
        "checks": [finding.as_dict() for finding in findings],
    }


def judged(part: Mapping[str, Any], lineage: Sequence[Finding]) -> dict[str, Any]:
    """Return the part of a method with a verdict for each sentence and for the whole guarantee.

    A check of a sentence is one of the method's or, for cells, one of the lineage; without a result it was
    not made.
    """
    own = [Finding(**check) for check in part["checks"]]
    known = {finding.check: finding for finding in (*lineage, *own)}
    cells = {check for one in part["sentences"] for check in one["checks"]} - {one.check for one in own}

    def verdict(checks: Iterable[str]) -> str:
        return verdict_of([known.get(check, Finding(check, "not checkable")) for check in checks])

    sentences = [one | {"audit": verdict(one["checks"])} for one in part["sentences"]]
    return {
        **part,
        "sentences": sentences,
        "audit": verdict([*(one.check for one in own), *sorted(cells)]),
    }


def build(
    *,
    release: dict[str, Any],
    methods: list[dict[str, Any]],
    lineage: list[Finding],
    secret: Secret,
    ledger: dict[str, Any] | None,
    own_noise: bool = False,
) -> Certificate:
    """Return the public part: no query, no user, and nothing that only the input shows.

    `own_noise` says that a method drew from the operating system, so that no secret gives the release again.
    """
    findings = [Finding(c["check"], c["verdict"]) for part in methods for c in part["checks"]] + lineage
    randomness = {
        "secret": secret.origin,
        "reproducible": secret.origin != "operating system" and not own_noise,
        "publishable": secret.publishable,
    }
    return {
        "schema": SCHEMA,
        "tool": {"name": "querycloak", "version": __version__},
        "release": release,
        "methods": methods,
        "lineage": [finding.as_dict() for finding in lineage],
        "audit": verdict_of(findings),
        "randomness": randomness | ({"noise": "operating system"} if own_noise else {}),
        "ledger": ledger,
        "findings": [],
    }


def to_bytes(certificate: Certificate) -> bytes:
    """Write a certificate the same way every time, so that equal ones are equal byte for byte."""
    return (json.dumps(certificate, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


@cache
def _validator(version: int) -> Any:
    import fastjsonschema

    schema = files("querycloak.schemas").joinpath(f"certificate-{version}.json").read_text("utf-8")
    return fastjsonschema.compile(json.loads(schema))


def read(path: Path) -> Certificate:
    """Read a certificate and check it against its schema."""
    import fastjsonschema

    try:
        content = json.loads(path.read_text("utf-8"))
        return cast(Certificate, _validator(_version(content))(content))
    except OSError:
        raise UsageError(
            "there is no certificate to read", hint="name it with `--certificate FILE`"
        ) from None
    except fastjsonschema.JsonSchemaValueException as error:
        raise DataError(f"the certificate does not fit its schema at `{error.name}`") from None
    except ValueError:
        raise DataError("the certificate is not JSON") from None
    except RecursionError:
        raise DataError("the certificate is nested too deeply") from None


def _version(content: Any) -> int:
    """Return the version of the schema of a certificate. Raise DataError if it cannot be read."""
    stated = content.get("schema") if isinstance(content, dict) else None
    family, _, version = stated.rpartition("/") if isinstance(stated, str) else ("", "", "")
    if family != SCHEMA.rpartition("/")[0] or not version.isdecimal() or len(version) > 8:
        return VERSIONS[-1]  # it does not fit that schema
    if int(version) not in VERSIONS:
        raise DataError(
            f"the certificate has version {int(version)} of the schema; this querycloak reads versions up to "
            f"{VERSIONS[-1]}",
            hint="read it with the querycloak that wrote it, or a newer one",
        )
    return int(version)


def _unsigned_bytes(certificate: Certificate) -> bytes:
    return to_bytes({name: part for name, part in certificate.items() if name != "signature"})


def _library() -> tuple[Any, Any]:
    """Return the modules for keys and for their bytes."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra("sign", "a signature") from None
    return ed25519, serialization


def signing_key(key_file: Path) -> Any:
    """Read the private key that certificates are signed with."""
    kind, how = _library()
    try:
        key = how.load_pem_private_key(key_file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError):
        key = None
    if not isinstance(key, kind.Ed25519PrivateKey):
        raise UsageError(
            "the signing key is not an unencrypted Ed25519 private key in PEM form",
            hint="make one with `openssl genpkey -algorithm ed25519 -out key.pem`",
        )
    return key


def sign(certificate: Certificate, key_file: Path) -> Certificate:
    """Add an Ed25519 signature over everything else in the certificate."""
    key, (_, how) = signing_key(key_file), _library()
    public = key.public_key().public_bytes(how.Encoding.Raw, how.PublicFormat.Raw)
    value = key.sign(_unsigned_bytes(certificate))
    signature = {
        "algorithm": "ed25519",
        "public_key": base64.b64encode(public).decode(),
        "value": base64.b64encode(value).decode(),
    }
    return certificate | {"signature": signature}


def signature_fault(certificate: Certificate, public_key: Path) -> str:
    """Check the signature against a key that the reader trusts; an empty text means that it fits."""
    _, how = _library()
    from cryptography.exceptions import InvalidSignature

    if "signature" not in certificate:
        return "the certificate is not signed"
    try:
        key = how.load_pem_public_key(public_key.read_bytes())
        key.verify(base64.b64decode(certificate["signature"]["value"]), _unsigned_bytes(certificate))
    except InvalidSignature:
        return "the signature does not fit the certificate and this key"
    except (OSError, ValueError, AttributeError, TypeError):
        raise UsageError("the public key is not an Ed25519 public key in PEM form") from None
    return ""
