"""The keys of an installation.

In the sandbox the accounts' keys are public and the master key is made once, kept in a file that only
its owner can read. On any other chain the operator sets every key, and a public one is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import SecretStr

from foretell.app.clock_and_ids import new_key
from foretell.app.roles import KeyName
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_ACCOUNTS,
    AccountRole,
    sandbox_account,
)
from foretell.domain.errors.command import MissingKey
from foretell.domain.values.credentials import MASTER_KEY_BYTES
from foretell.runtime.files import write_atomically
from foretell.settings import Settings

MASTER_KEY_FILE: Final = "master.key"
PUBLIC_KEYS: Final = frozenset(account.private_key for account in SANDBOX_ACCOUNTS)


FURTHER_OPERATORS: Final = "operator_keys"
FURTHER_OPERATORS_MAX: Final = 7
"""Most accounts that settle beside the first: each is watched and asked for its coin."""

DISTINCT_BYTES_MIN: Final = 8
"""Of 32 random bytes, fewer are distinct once in 10^37 keys."""

_SANDBOX_ROLES: Final[Mapping[KeyName, AccountRole]] = MappingProxyType(
    {
        KeyName.OPERATOR: AccountRole.OPERATOR,
        KeyName.REGISTRAR: AccountRole.REGISTRAR,
        KeyName.RELAYER: AccountRole.RELAYER,
        KeyName.STORAGE: AccountRole.STORAGE,
    }
)


@dataclass(frozen=True, slots=True)
class InstallationKeys:
    """The keys of one installation; each is read when a product asks for it."""

    _settings: Settings

    @property
    def master(self) -> bytes:
        """The key that API credentials are derived from."""
        settings = self._settings
        if settings.is_sandbox:
            return _given(settings, KeyName.MASTER) or _kept_master_key(settings.data)
        return required_key(settings, KeyName.MASTER)

    @property
    def operator(self) -> bytes:
        """The key of the account that settles trades."""
        return self._account_key(KeyName.OPERATOR)

    @property
    def further_operators(self) -> tuple[bytes, ...]:
        """The keys of further accounts that settle trades; the sandbox has none."""
        if self._settings.is_sandbox:
            return ()
        return _further_operators(self._settings)

    @property
    def registrar(self) -> bytes:
        """The key of the account that opens tokens to trading."""
        return self._account_key(KeyName.REGISTRAR)

    @property
    def relayer(self) -> bytes:
        """The key of the account that sends Safe transactions."""
        return self._account_key(KeyName.RELAYER)

    @property
    def storage(self) -> bytes:
        """The key that signs stored metadata."""
        return self._account_key(KeyName.STORAGE)

    def require(self, needed: frozenset[KeyName]) -> None:
        """Refuse if a needed key is missing, malformed or public."""
        for name in KeyName:
            if name in needed:
                self.key(name)

    def key(self, name: KeyName) -> bytes:
        """Return a key by its name, or refuse."""
        return self.master if name is KeyName.MASTER else self._account_key(name)

    def _account_key(self, name: KeyName) -> bytes:
        settings = self._settings
        if settings.is_sandbox and name in _SANDBOX_ROLES:
            return sandbox_account(_SANDBOX_ROLES[name], settings.chain_id).private_key
        return required_key(settings, name)


def open_keys(settings: Settings, needed: frozenset[KeyName]) -> InstallationKeys:
    """Return the keys of the settings, or the sandbox's own; refuse if a needed one cannot be used.

    Outside of the sandbox, refuse too a key that was not made at random, and one for two purposes:
    two queues of transactions would use each other's nonces, and the holder of one key must not
    hold another.
    """
    if not settings.is_sandbox:
        _check_given(settings)
    keys = InstallationKeys(settings)
    keys.require(needed)
    return keys


def required_key(settings: Settings, name: KeyName) -> bytes:
    """Return a key that the operator set, or refuse one that is missing, malformed or public."""
    key = _given(settings, name)
    if key is None:
        raise MissingKey(name, "is not set")
    _check_private(name, key)
    return key


def _check_private(name: str, key: bytes) -> None:
    if key in PUBLIC_KEYS:
        raise MissingKey(
            name, "is one of the sandbox's keys, which are public; set one of your own"
        )


def _check_given(settings: Settings) -> None:
    further = _further_operators(settings)
    given: list[tuple[str, bytes | None]] = [(name, _given(settings, name)) for name in KeyName]
    given += [(FURTHER_OPERATORS, key) for key in further]
    for each in further:
        _check_private(FURTHER_OPERATORS, each)
    name_by_key: dict[bytes, str] = {}
    for name, key in given:
        if key is None:
            continue
        if len(set(key)) < DISTINCT_BYTES_MIN:
            raise MissingKey(name, "repeats itself; make one at random: openssl rand -hex 32")
        if (other := name_by_key.get(key)) is not None:
            raise MissingKey(name, f"is that of FORETELL_{other.upper()}: each needs its own")
        name_by_key[key] = name


def _further_operators(settings: Settings) -> tuple[bytes, ...]:
    """Return the further operators' keys as the settings have them."""
    secret = settings.operator_keys
    texts = () if secret is None else tuple(secret.get_secret_value().split(","))
    if len(texts) > FURTHER_OPERATORS_MAX:
        raise MissingKey(FURTHER_OPERATORS, f"has {len(texts)} keys, above {FURTHER_OPERATORS_MAX}")
    return tuple(_parsed(FURTHER_OPERATORS, text.strip()) for text in texts)


def _given(settings: Settings, name: KeyName) -> bytes | None:
    """Return a key as the settings have it, None if they do not."""
    secret = _secrets(settings)[name]
    if secret is None:
        return None
    return _parsed(name, secret.get_secret_value())


def _parsed(name: str, text: str) -> bytes:
    try:
        key = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        key = b""
    if len(key) != MASTER_KEY_BYTES:
        raise MissingKey(name, "is not 64 hex digits")
    return key


def _secrets(settings: Settings) -> Mapping[KeyName, SecretStr | None]:
    return {
        KeyName.MASTER: settings.master_key,
        KeyName.OPERATOR: settings.operator_key,
        KeyName.REGISTRAR: settings.registrar_key,
        KeyName.RELAYER: settings.relayer_key,
        KeyName.STORAGE: settings.storage_key,
        KeyName.ADMIN: settings.admin_key,
    }


def _kept_master_key(folder: Path) -> bytes:
    """Return the sandbox's master key, made and kept in its folder if there is none."""
    path = folder / MASTER_KEY_FILE
    if not path.exists():
        write_atomically(path, new_key(), draft=path.with_suffix(".draft"))
    key = path.read_bytes()
    if len(key) != MASTER_KEY_BYTES:
        raise MissingKey(
            KeyName.MASTER, f"is kept in {path}, which does not hold {MASTER_KEY_BYTES} bytes"
        )
    return key
