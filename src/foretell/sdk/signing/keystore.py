"""Keystore files of wallets (Web3 Secret Storage, version 3): a private key under a password."""

import hashlib
import hmac
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from foretell.domain.errors.command import KeystoreDamaged, WrongKeystorePassword
from foretell.domain.values.hexadecimal import keccak256

FILE_BYTES_MAX: Final = 16 * 1024
MEMORY_BYTES_MAX: Final = 512 * 1024 * 1024
"""The most that scrypt may take, which is 128 * n * r; wallets use 256 MiB."""
ROUNDS_MAX: Final = 10_000_000
KEY_BYTES: Final = 32


def read_keystore(path: Path, password: str) -> bytes:
    """Return the private key of a file, or refuse a damaged file or a wrong password."""
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise KeystoreDamaged(str(path), f"it has more than {FILE_BYTES_MAX} bytes")
    try:
        fields = msgspec.json.decode(content)
        crypto = fields.get("crypto") or fields["Crypto"]
        if fields["version"] != 3 or crypto["cipher"] != "aes-128-ctr":  # noqa: PLR2004 - its number
            raise KeystoreDamaged(str(path), "it is no keystore of version 3 with aes-128-ctr")
        derived = _derived(crypto["kdf"], crypto["kdfparams"], password)
        wrapped = bytes.fromhex(crypto["ciphertext"])
        checked = keccak256(derived[16:32] + wrapped)
        if not hmac.compare_digest(checked, bytes.fromhex(crypto["mac"])):
            raise WrongKeystorePassword(str(path))
        counter = bytes.fromhex(crypto["cipherparams"]["iv"])
        opened = Cipher(algorithms.AES(derived[:16]), modes.CTR(counter)).decryptor()
        key = opened.update(wrapped) + opened.finalize()
    except (msgspec.MsgspecError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise KeystoreDamaged(str(path), f"{type(error).__name__}: {error}") from error
    if len(key) != KEY_BYTES:
        raise KeystoreDamaged(str(path), f"its key has {len(key)} bytes")
    return key


def _derived(kind: str, given: dict[str, Any], password: str) -> bytes:
    """Return the key of the cipher and of its check; raise ValueError for parameters out of bounds."""
    salt, length = bytes.fromhex(given["salt"]), given["dklen"]
    if length != KEY_BYTES:
        raise ValueError("the derived key must have 32 bytes")
    if kind == "scrypt":
        n, r, p = given["n"], given["r"], given["p"]
        if 128 * n * r > MEMORY_BYTES_MAX or p > MEMORY_BYTES_MAX // (128 * n * r):
            raise ValueError("the parameters of scrypt are out of bounds")
        return hashlib.scrypt(
            password.encode(), salt=salt, n=n, r=r, p=p, maxmem=2 * MEMORY_BYTES_MAX, dklen=length
        )
    if kind != "pbkdf2" or given["prf"] != "hmac-sha256" or not 0 < given["c"] <= ROUNDS_MAX:
        raise ValueError("the key derivation is unknown or out of bounds")
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, given["c"], length)
