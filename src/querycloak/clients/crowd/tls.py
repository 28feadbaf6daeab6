"""Identity of a peer: key, certificate and the TLS contexts that admit friends only."""

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
    """Create an Ed25519 key and a certificate in a folder; return the certificate's fingerprint.

    The certificate contains neither a name nor a time: a random name, and the same validity for all peers.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization as how
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise MissingExtra("crowd", "a new identity") from None
    from datetime import UTC, datetime

    key = Ed25519PrivateKey.generate()
    # friends' certificates need different names, since OpenSSL looks certificates up by name
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
    _write_new(folder, {KEY: private, CERTIFICATE: certificate.public_bytes(how.Encoding.PEM)})
    return fingerprint(certificate.public_bytes(how.Encoding.DER))


def _write_new(folder: Path, files: dict[str, bytes]) -> None:
    """Write private files, all or none, and never over an existing file."""
    created: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, content in files.items():
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            created.append(folder / name)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
    except OSError as error:
        for path in created:
            path.unlink()
        if isinstance(error, FileExistsError):
            raise Refused("that folder contains an identity already", hint="choose another folder") from None
        raise UsageError(f"the identity cannot be written: {error.strerror}") from None


def read_certificate(path: Path, whose: str) -> bytes:
    """Read a certificate (PEM); return its binary form."""
    try:
        return ssl.PEM_cert_to_DER_cert(path.read_text("ascii").strip())
    except OSError as error:
        raise UsageError(f"the certificate of {whose} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"the certificate of {whose} is not one certificate in PEM form") from None


def fingerprint(certificate: bytes) -> str:
    """Return the SHA-256 of a certificate, which friends compare over another channel."""
    return hashlib.sha256(certificate).hexdigest()


def context(side: ssl._SSLMethod, certificate: Path, key: Path, friends: Iterable[bytes]) -> ssl.SSLContext:
    """Return a TLS 1.3 context with certificates on both sides that trusts exactly these friends.

    A friend is identified by its certificate, not by a host name, so no name is checked.
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
