"""Who a peer is: a key of her own, a certificate that she gives to her friends, and nobody else is let in."""

from __future__ import annotations

import hashlib
import os
import secrets
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from querycloak.errors import MissingExtra, Refused, UsageError

CERTIFICATE: Final = "certificate.pem"
KEY: Final = "key.pem"


def new_identity(folder: Path) -> str:
    """Make an Ed25519 key and a certificate in a folder; give the certificate's fingerprint.

    Neither a name nor the time is in it: a random name, and the same validity for everybody.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization as how
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise MissingExtra("sign", "a new identity") from None
    from datetime import UTC, datetime

    key = Ed25519PrivateKey.generate()
    # friends' certificates need different names, since a name is how OpenSSL looks for one
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, secrets.token_hex(16))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(9999, 12, 31, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, None)
    )
    private = key.private_bytes(how.Encoding.PEM, how.PrivateFormat.PKCS8, how.NoEncryption())
    _write_new(folder, KEY, private)
    _write_new(folder, CERTIFICATE, certificate.public_bytes(how.Encoding.PEM))
    return fingerprint(certificate.public_bytes(how.Encoding.DER))


def _write_new(folder: Path, name: str, content: bytes) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Refused(f"there is a `{name}` in that folder already", hint="choose another folder") from None
    except OSError as error:
        raise UsageError(f"the identity cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def read_certificate(path: Path, whose: str) -> bytes:
    """Read a certificate (PEM); give its binary form."""
    try:
        return ssl.PEM_cert_to_DER_cert(path.read_text("ascii").strip())
    except OSError as error:
        raise UsageError(f"the certificate of {whose} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"the certificate of {whose} is not one certificate in PEM form") from None


def fingerprint(certificate: bytes) -> str:
    """Give the SHA-256 of a certificate: what friends compare over another way."""
    return hashlib.sha256(certificate).hexdigest()


def context(side: ssl._SSLMethod, certificate: Path, key: Path, friends: Iterable[bytes]) -> ssl.SSLContext:
    """Make TLS 1.3 with a certificate on both sides, in which exactly these friends are trusted.

    Which friend it is, is said by her certificate and not by a name: so no name is checked.
    """
    made = ssl.SSLContext(side)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    try:
        made.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError):
        raise UsageError("the peer's own certificate and key cannot be read, or do not fit") from None
    try:
        made.load_verify_locations(cadata=b"".join(friends))
    except ssl.SSLError:
        raise UsageError("a friend's certificate is not a certificate") from None
    return made
