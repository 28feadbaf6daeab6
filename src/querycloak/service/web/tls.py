"""TLS by certificate files: checked before the service starts, and read again when they are renewed."""

from __future__ import annotations

import ssl

from querycloak.errors import UsageError
from querycloak.service.settings import ServiceSettings


def context(settings: ServiceSettings) -> ssl.SSLContext | None:
    """Make the context of a service that has a certificate; nothing before TLS 1.2 is spoken."""
    if not settings.tls_certificate and not settings.tls_key:
        return None
    if not settings.tls_certificate or not settings.tls_key:
        raise UsageError("TLS needs both `tls_certificate` and `tls_key`")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    load(made, settings)
    return made


def load(known: ssl.SSLContext, settings: ServiceSettings) -> None:
    """Read certificate and key; connections from now on see them."""
    try:
        known.load_cert_chain(settings.tls_certificate, settings.tls_key, password=_no_password)
    except ssl.SSLError:
        raise UsageError("certificate and key cannot be used: they are not PEM, or no pair") from None
    except OSError as error:
        raise UsageError(f"certificate and key cannot be used: {error.strerror}") from None


def _no_password() -> str:
    """Refuse a key that is locked by a password: OpenSSL would ask for it on the terminal."""
    raise UsageError(
        "the TLS key is locked by a password", hint="keep it unlocked, readable by its owner only"
    )
