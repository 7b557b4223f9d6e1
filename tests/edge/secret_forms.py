"""Search for the secrets of an API key, in every form that they could be kept or shown in."""

import base64
from collections.abc import Iterable


def forms_of(secret: str, passphrase: str) -> list[bytes]:
    """Return a secret and a passphrase as text, as bytes, and as hex of either case."""
    raw = base64.urlsafe_b64decode(secret)
    plain = base64.b64encode(raw)
    return [
        secret.encode(),
        secret.rstrip("=").encode(),
        plain.rstrip(b"="),
        raw,
        raw.hex().encode(),
        raw.hex().upper().encode(),
        repr(raw)[2:-1].encode(),
        passphrase.encode(),
        passphrase.upper().encode(),
        bytes.fromhex(passphrase),
    ]


def forms_in(contents: Iterable[bytes], secret: str, passphrase: str) -> list[bytes]:
    """Return the forms of a secret or a passphrase that any of the contents has."""
    forms = forms_of(secret, passphrase)
    return [form for content in contents for form in forms if form in content]
