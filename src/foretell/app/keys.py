"""Where the installation's keys come from.

In the sandbox the accounts' keys are public and the master key is made once, kept in a file that only
its owner reads. Anywhere else every key is the operator's to give, and a public one is refused.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from foretell.app.clock_and_ids import new_key
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_ACCOUNTS,
    AccountRole,
    sandbox_account,
)
from foretell.domain.errors.command import MissingKey
from foretell.domain.values.credentials import MASTER_KEY_BYTES
from foretell.journal.files.segments import sync_folder
from foretell.settings import Settings

MASTER_KEY_FILE: Final = "master.key"
SENDERS: Final = ("operator_key", "registrar_key", "relayer_key")
PUBLIC_KEYS: Final = frozenset(account.private_key for account in SANDBOX_ACCOUNTS)


@dataclass(frozen=True, slots=True)
class InstallationKeys:
    """The keys of one installation; a process asks for those alone that its parts need."""

    _settings: Settings

    @property
    def master(self) -> bytes:
        """What API credentials are derived from."""
        given = self._settings.master_key
        if self._settings.is_sandbox:
            return _given("master_key", given) or _kept_master_key(self._settings.data)
        return required_key("master_key", given)

    @property
    def operator(self) -> bytes:
        """The account that settles trades."""
        return self._key("operator_key", AccountRole.OPERATOR)

    @property
    def registrar(self) -> bytes:
        """The account that opens tokens to trading."""
        return self._key("registrar_key", AccountRole.REGISTRAR)

    @property
    def relayer(self) -> bytes:
        """The account that sends Safe transactions."""
        return self._key("relayer_key", AccountRole.RELAYER)

    @property
    def storage(self) -> bytes:
        """What signs stored metadata."""
        return self._key("storage_key", AccountRole.STORAGE)

    def _key(self, name: str, role: AccountRole) -> bytes:
        settings = self._settings
        if settings.is_sandbox:
            return sandbox_account(role, settings.chain_id).private_key
        return required_key(name, getattr(settings, name))


def open_keys(settings: Settings, needed: Iterable[str]) -> InstallationKeys:
    """Return the keys that the settings name, or the sandbox's own; refuse if a needed one fails.

    Refuses too one account for two queues of transactions: they would take each other's nonces.
    """
    name_by_key: dict[bytes, str] = {}
    for name in SENDERS:
        key = None if settings.is_sandbox else _given(name, getattr(settings, name))
        other = name_by_key.setdefault(key, name) if key is not None else name
        if other != name:
            raise MissingKey(name, f"is that of FORETELL_{other.upper()}: each needs its own")
    vault = InstallationKeys(settings)
    for name in needed:
        assert getattr(vault, name)
    return vault


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
        sync_folder(folder)
    key = path.read_bytes()
    if len(key) != MASTER_KEY_BYTES:
        raise MissingKey(
            "master_key", f"is kept in {path}, which does not hold {MASTER_KEY_BYTES} bytes"
        )
    return key
