"""Key files: the secret at rest, and the passphrase that unwraps it."""

import base64
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from tests.rigs.values import an_address

from foretell.domain.errors.command import KeyFileDamaged, WrongKeyFilePassphrase
from foretell.domain.values.credentials import (
    Credentials,
    KeyIndex,
    L2Signer,
    derive_credentials,
)
from foretell.sdk import key_file
from foretell.sdk.key_file import (
    FILE_BYTES_MAX,
    MEMORY_BYTES_MAX,
    KeyFile,
    read_key_file,
    wrap,
    write_key_file,
)

ADDRESS = an_address("trader")
CREDENTIALS = derive_credentials(b"\x07" * 32, KeyIndex(80002, ADDRESS, 0))


@pytest.fixture(scope="module")
def contents() -> KeyFile:
    return wrap(ADDRESS, CREDENTIALS)


@pytest.fixture
def path(tmp_path: Path, contents: KeyFile) -> Path:
    path = tmp_path / "key.json"
    write_key_file(path, contents)
    return path


@pytest.mark.spec(116)
def test_the_passphrase_unwraps_the_secret_of_a_file_that_has_neither(path: Path) -> None:
    raw = path.read_bytes()
    secret = base64.urlsafe_b64decode(CREDENTIALS.secret)
    for part in (CREDENTIALS.secret, CREDENTIALS.passphrase, secret.hex()):
        assert part.encode() not in raw
    assert base64.b64encode(secret)[:-2] not in raw

    unwrapped = read_key_file(path).unwrap(CREDENTIALS.passphrase)

    assert unwrapped == CREDENTIALS
    signature = L2Signer(unwrapped.secret).sign("1", "GET", "/data/orders", b"")
    assert signature == L2Signer(CREDENTIALS.secret).sign("1", "GET", "/data/orders", b"")


@pytest.mark.spec(116)
@pytest.mark.parametrize(
    "passphrase",
    [
        CREDENTIALS.passphrase[:-1] + "x",
        CREDENTIALS.passphrase.upper(),
        CREDENTIALS.passphrase + "\n",
        "",
        "x" * 2000,
    ],
)
def test_no_other_passphrase_unwraps_it(contents: KeyFile, passphrase: str) -> None:
    with pytest.raises(WrongKeyFilePassphrase) as refused:
        contents.unwrap(passphrase)
    assert CREDENTIALS.key_id in refused.value.message
    assert passphrase not in refused.value.message or not passphrase


def test_another_implementation_unwraps_it(path: Path) -> None:
    """The file is what its fields say: scrypt of RFC 7914, AES-GCM, and sorted JSON beside the secret."""
    fields = json.loads(path.read_bytes())
    derivation = fields["derivation"]
    salt = base64.b64decode(derivation["salt"])
    scrypt = Scrypt(salt, 32, derivation["n"], derivation["r"], derivation["p"])
    key = scrypt.derive(CREDENTIALS.passphrase.encode())
    beside = {name: fields[name] for name in fields if name not in {"wrappedSecret", "digest"}}
    authenticated = json.dumps(beside, sort_keys=True, separators=(",", ":")).encode()
    nonce, wrapped = (base64.b64decode(fields[name]) for name in ("nonce", "wrappedSecret"))
    assert AESGCM(key).decrypt(nonce, wrapped, authenticated) == CREDENTIALS.secret.encode()


def test_the_same_key_is_wrapped_differently_each_time(contents: KeyFile) -> None:
    again = wrap(ADDRESS, CREDENTIALS)
    assert again.nonce != contents.nonce
    assert again.derivation.salt != contents.derivation.salt
    assert again.wrapped_secret != contents.wrapped_secret


def test_only_its_owner_may_read_it(tmp_path: Path, contents: KeyFile) -> None:
    before = os.umask(0)
    try:
        write_key_file(tmp_path / "key.json", contents)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key.json").stat().st_mode) == 0o600


def test_a_file_is_replaced_in_one_step(path: Path, contents: KeyFile) -> None:
    with path.open("rb") as old:
        write_key_file(path, wrap(ADDRESS, CREDENTIALS))
        assert msgspec.json.decode(old.read(), type=KeyFile) == contents
    assert read_key_file(path) != contents
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path, contents: KeyFile) -> None:
    occupied = tmp_path / "key.json"
    (occupied / "in the way").mkdir(parents=True)
    with pytest.raises(OSError, match=r"key\.json"):
        write_key_file(occupied, contents)
    assert list(tmp_path.iterdir()) == [occupied]


@pytest.mark.parametrize("at", [0.0, 0.2, 0.4, 0.6, 0.8, 0.99])
def test_a_damaged_file_is_refused_before_any_passphrase(path: Path, at: float) -> None:
    raw = bytearray(path.read_bytes())
    raw[int(at * (len(raw) - 1))] ^= 1
    path.write_bytes(raw)
    with pytest.raises(KeyFileDamaged, match=r"key\.json cannot be used"):
        read_key_file(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"null", b"\xff", b'{"version": 2}', b" " * (FILE_BYTES_MAX + 1)],
    ids=["empty", "no field", "null", "no text", "later version", "too long"],
)
def test_what_is_no_key_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(KeyFileDamaged):
        read_key_file(path)


@pytest.mark.parametrize("cut", [2, 10, 100])
def test_half_a_file_is_refused(path: Path, cut: int) -> None:
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(KeyFileDamaged):
        read_key_file(path)


def forged(contents: KeyFile, **changed: Any) -> KeyFile:
    """Return other contents with the digest that belongs to them."""
    draft = msgspec.structs.replace(contents, **changed)
    return msgspec.structs.replace(draft, digest=draft.content_digest())


@pytest.mark.parametrize(
    "forge",
    [
        lambda contents: forged(contents, address=an_address("thief")),
        lambda contents: forged(contents, api_key="another"),
        lambda contents: forged(contents, wrapped_secret=base64.b64encode(b"x" * 60).decode()),
        lambda contents: forged(contents, nonce=base64.b64encode(b"n" * 12).decode()),
    ],
    ids=["address", "key", "secret", "nonce"],
)
def test_a_forged_file_is_not_unwrapped(
    contents: KeyFile, forge: Callable[[KeyFile], KeyFile]
) -> None:
    with pytest.raises(WrongKeyFilePassphrase):
        forge(contents).unwrap(CREDENTIALS.passphrase)


@pytest.mark.parametrize(
    "change",
    [
        {"n": 2**14},
        {"n": 2**15 + 1},
        {"r": 1},
        {"n": 2**17},
        {"r": 2**20},
        {"n": 2**70},
        {"salt": "!"},
    ],
    ids=[
        "low cost",
        "no power of 2",
        "small blocks",
        "much memory",
        "huge blocks",
        "huge",
        "no salt",
    ],
)
def test_parameters_out_of_bounds_are_refused(contents: KeyFile, change: dict[str, Any]) -> None:
    """Among them those that need more memory than the bound."""
    derivation = msgspec.structs.replace(contents.derivation, **change)
    with pytest.raises(KeyFileDamaged):
        forged(contents, derivation=derivation).unwrap(CREDENTIALS.passphrase)


def test_the_memory_of_the_parameters_is_below_the_bound() -> None:
    assert 128 * key_file.COST * key_file.BLOCK_SIZE < MEMORY_BYTES_MAX


def test_a_passphrase_of_a_person_works_too() -> None:
    credentials = Credentials("key", "secret", "ein gewähltes Wort")
    assert wrap(ADDRESS, credentials).unwrap("ein gewähltes Wort") == credentials
