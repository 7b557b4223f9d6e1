"""A file with an API key: the secret is encrypted under the passphrase, which the file does not have.

The file alone signs nothing; with the passphrase it signs as its owner. Keep both apart.
The passphrase that the API issues is random, and scrypt also protects a weaker one.

The file is JSON. Everything but the encrypted secret is authenticated with it, and a digest of the whole
distinguishes damage from a wrong passphrase.
"""

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from foretell.domain.errors.command import KeyFileDamaged, WrongKeyFilePassphrase
from foretell.domain.values.credentials import Credentials
from foretell.domain.values.hexadecimal import Address
from foretell.sdk.files import write_private

VERSION: Final = 1
FILE_BYTES_MAX: Final = 16 * 1024
PASSPHRASE_CHARS_MAX: Final = 1024

COST: Final = 2**15
BLOCK_SIZE: Final = 8
PARALLELISM: Final = 1
MEMORY_BYTES_MAX: Final = 64 * 1024 * 1024
"""The most that scrypt may take, which is 128 * n * r; the parameters above need 32 MiB."""
KEY_BYTES: Final = 32
SALT_BYTES: Final = 16
NONCE_BYTES: Final = 12


class Scrypt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the key of the cipher is derived from the passphrase (RFC 7914)."""

    name: Literal["scrypt"]
    n: int
    r: int
    p: Literal[1]
    salt: str

    def key(self, passphrase: str) -> bytes:
        """Return the key of the cipher; raise ValueError for parameters out of bounds."""
        if self.n < COST or self.r < BLOCK_SIZE or 128 * self.n * self.r > MEMORY_BYTES_MAX:
            raise ValueError("the parameters of scrypt are out of bounds")
        return hashlib.scrypt(
            passphrase.encode(),
            salt=_decoded(self.salt, SALT_BYTES),
            n=self.n,
            r=self.r,
            p=self.p,
            maxmem=2 * MEMORY_BYTES_MAX,
            dklen=KEY_BYTES,
        )


class KeyFile(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The contents of a key file; base64 wherever there are bytes."""

    version: Literal[1]
    address: Address
    api_key: str
    derivation: Scrypt
    cipher: Literal["aes-256-gcm"]
    nonce: str
    wrapped_secret: str
    digest: str
    """The SHA-256 of the other fields, in hex."""

    def unwrap(self, passphrase: str) -> Credentials:
        """Return the credentials, or refuse a passphrase that does not open them."""
        if not 0 < len(passphrase) <= PASSPHRASE_CHARS_MAX:
            raise WrongKeyFilePassphrase(self.api_key)
        try:
            key = self.derivation.key(passphrase)
            nonce, wrapped = _decoded(self.nonce, NONCE_BYTES), _decoded(self.wrapped_secret)
            secret = AESGCM(key).decrypt(nonce, wrapped, self.authenticated()).decode()
        except InvalidTag:
            raise WrongKeyFilePassphrase(self.api_key) from None
        except ValueError as error:
            raise KeyFileDamaged(self.api_key, str(error)) from error
        return Credentials(self.api_key, secret, passphrase)

    def authenticated(self) -> bytes:
        """Return the fields that the cipher authenticates beside the secret."""
        return _encoded(self, "wrappedSecret", "digest")

    def content_digest(self) -> str:
        """Return what `digest` must be."""
        return hashlib.sha256(_encoded(self, "digest")).hexdigest()


def wrap(
    address: Address,
    credentials: Credentials,
    random_bytes: Callable[[int], bytes] = os.urandom,
) -> KeyFile:
    """Return the contents of a key file; each call needs fresh random bytes."""
    assert 0 < len(credentials.passphrase) <= PASSPHRASE_CHARS_MAX
    salt, nonce = random_bytes(SALT_BYTES), random_bytes(NONCE_BYTES)
    draft = KeyFile(
        version=VERSION,
        address=address,
        api_key=credentials.key_id,
        derivation=Scrypt("scrypt", COST, BLOCK_SIZE, PARALLELISM, _text(salt)),
        cipher="aes-256-gcm",
        nonce=_text(nonce),
        wrapped_secret="",
        digest="",
    )
    cipher = AESGCM(draft.derivation.key(credentials.passphrase))
    wrapped = cipher.encrypt(nonce, credentials.secret.encode(), draft.authenticated())
    wrapped_file = msgspec.structs.replace(draft, wrapped_secret=_text(wrapped))
    return msgspec.structs.replace(wrapped_file, digest=wrapped_file.content_digest())


def write_key_file(path: Path, contents: KeyFile) -> None:
    """Write a key file that only its owner may read; a crash leaves the old file or the new one."""
    write_private(path, msgspec.json.format(msgspec.json.encode(contents), indent=2) + b"\n")


def read_key_file(path: Path) -> KeyFile:
    """Return the contents of a key file, or refuse one that is damaged."""
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise KeyFileDamaged(str(path), f"it has more than {FILE_BYTES_MAX} bytes")
    try:
        contents = msgspec.json.decode(content, type=KeyFile)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise KeyFileDamaged(str(path), str(error)) from error
    if contents.digest != contents.content_digest():
        raise KeyFileDamaged(str(path), "its digest is another one")
    return contents


def _encoded(contents: KeyFile, *without: str) -> bytes:
    """Return the fields but those as JSON with sorted names."""
    fields = msgspec.to_builtins(contents)
    return msgspec.json.encode(
        {name: value for name, value in fields.items() if name not in without}, order="sorted"
    )


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decoded(text: str, length: int | None = None) -> bytes:
    """Return bytes of base64; raise ValueError for other text or another length."""
    raw = base64.b64decode(text, validate=True)
    if length is not None and len(raw) != length:
        raise ValueError(f"{length} bytes are needed, and it has {len(raw)}")
    return raw
