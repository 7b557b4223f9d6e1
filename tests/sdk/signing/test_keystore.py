import json
from pathlib import Path
from typing import Any, Literal

import pytest
from eth_account import Account
from tests.rigs.values import a_key

from foretell.domain.errors.command import KeystoreDamaged, WrongKeystorePassword
from foretell.domain.values.eip712 import address_of_key
from foretell.sdk.signing.keystore import FILE_BYTES_MAX
from foretell.sdk.signing.signers import KeySigner

KEY = a_key("keystore")


def a_keystore(kdf: Literal["pbkdf2", "scrypt"] = "scrypt") -> dict[str, Any]:
    """Return a keystore that eth-account made."""
    made = Account.encrypt(KEY, "open", kdf=kdf, iterations=2)
    return dict(json.loads(json.dumps(made)))


@pytest.mark.parametrize("kdf", ["scrypt", "pbkdf2"])
def test_a_keystore_of_another_program_opens(
    tmp_path: Path, kdf: Literal["pbkdf2", "scrypt"]
) -> None:
    file = tmp_path / "keystore"
    file.write_text(json.dumps(a_keystore(kdf)))
    assert KeySigner.from_keystore(file, "open").address == address_of_key(KEY)
    with pytest.raises(WrongKeystorePassword, match=r"does not open the keystore .*/keystore"):
        KeySigner.from_keystore(file, "Open")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 1),
        (("crypto", "cipher"), "aes-256-gcm"),
        (("crypto", "kdf"), "argon2"),
        (("crypto", "kdfparams", "n"), 2**40),
        (("crypto", "kdfparams", "p"), 2**30),
        (("crypto", "kdfparams", "dklen"), 16),
        (("crypto", "kdfparams", "salt"), "zz"),
        (("crypto", "kdfparams"), []),
        (("crypto", "cipherparams", "iv"), "00"),
        (("crypto", "ciphertext"), 7),
        (("crypto",), None),
    ],
    ids=str,
)
def test_a_damaged_keystore_is_refused(tmp_path: Path, path: tuple[str, ...], value: Any) -> None:
    keystore = a_keystore()
    place = keystore
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    file = tmp_path / "keystore"
    file.write_text(json.dumps(keystore))
    with pytest.raises(KeystoreDamaged):
        KeySigner.from_keystore(file, "open")


@pytest.mark.parametrize("content", ["", "[]", "{", "x" * (FILE_BYTES_MAX + 1)], ids=len)
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "keystore").write_text(content)
    with pytest.raises(KeystoreDamaged):
        KeySigner.from_keystore(tmp_path / "keystore", "open")
