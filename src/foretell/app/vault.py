"""Where the installation's keys come from.

In the sandbox the accounts' keys are public and the master key is made once, kept in a file that only
its owner reads. Anywhere else every key is the operator's to give, and a public one is refused.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from foretell.app.chance import new_key
from foretell.domain.command_errors import MissingKey
from foretell.domain.credentials import MASTER_KEY_BYTES
from foretell.domain.sandbox import SANDBOX_ACCOUNTS, Role, sandbox_account
from foretell.settings import Settings

MASTER_KEY_FILE: Final = "master.key"
PUBLIC_KEYS: Final = frozenset(account.private_key for account in SANDBOX_ACCOUNTS)


@dataclass(frozen=True, slots=True)
class Vault:
    """The keys of one installation."""

    master: bytes = field(repr=False)
    operator: bytes = field(repr=False)
    registrar: bytes = field(repr=False)
    relayer: bytes = field(repr=False)
    storage: bytes = field(repr=False)


def open_vault(settings: Settings) -> Vault:
    """Return the keys that the settings name, or the sandbox's own."""
    if settings.is_sandbox:
        return Vault(
            master=_given("master_key", settings.master_key) or _kept_master_key(settings.data),
            operator=_public(Role.OPERATOR, settings),
            registrar=_public(Role.REGISTRAR, settings),
            relayer=_public(Role.RELAYER, settings),
            storage=_public(Role.STORAGE, settings),
        )
    _check_senders(settings)
    return Vault(
        master=required_key("master_key", settings.master_key),
        operator=required_key("operator_key", settings.operator_key),
        registrar=required_key("registrar_key", settings.registrar_key),
        relayer=required_key("relayer_key", settings.relayer_key),
        storage=required_key("storage_key", settings.storage_key),
    )


def _check_senders(settings: Settings) -> None:
    """Refuse one account for two queues of transactions: they would take each other's nonces."""
    name_by_key: dict[bytes, str] = {}
    for name, secret in (
        ("operator_key", settings.operator_key),
        ("registrar_key", settings.registrar_key),
        ("relayer_key", settings.relayer_key),
    ):
        other = name_by_key.setdefault(required_key(name, secret), name)
        if other != name:
            raise MissingKey(name, f"is that of FORETELL_{other.upper()}: each needs its own")


def _public(role: Role, settings: Settings) -> bytes:
    return sandbox_account(role, settings.chain_id).private_key


def _given(name: str, secret: SecretStr | None) -> bytes | None:
    if secret is None:
        return None
    text = secret.get_secret_value().removeprefix("0x")
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != MASTER_KEY_BYTES:
        raise MissingKey(name, "is not 64 hex digits")
    return key


def required_key(name: str, secret: SecretStr | None) -> bytes:
    """Return a key that the operator gave, or refuse one that is missing, malformed or public."""
    key = _given(name, secret)
    if key is None:
        raise MissingKey(name, "is not set")
    if key in PUBLIC_KEYS:
        raise MissingKey(name, "is one of the sandbox's, which the whole world knows")
    return key


def _kept_master_key(folder: Path) -> bytes:
    path = folder / MASTER_KEY_FILE
    if not path.exists():
        draft = path.with_suffix(".draft")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(new_key())
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    key = path.read_bytes()
    if len(key) != MASTER_KEY_BYTES:
        raise MissingKey(
            "master_key", f"is kept in {path}, which does not hold {MASTER_KEY_BYTES} bytes"
        )
    return key
