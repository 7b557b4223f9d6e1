import stat
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.app.rig import sandbox_settings
from tests.rigs.values import a_key

from foretell.app.keys import MASTER_KEY_FILE, InstallationKeys, open_keys
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_ACCOUNTS,
    SANDBOX_CHAIN_ID,
    AccountRole,
    SandboxAccount,
    sandbox_account,
)
from foretell.domain.errors.chain import SandboxOnly
from foretell.domain.errors.command import MissingKey
from foretell.settings import Settings

KEYS = ("master_key", "operator_key", "registrar_key", "relayer_key", "storage_key")
SENDERS = ("operator_key", "registrar_key", "relayer_key")
NODE = SecretStr("http://127.0.0.1:1")


def own_keys() -> dict[str, SecretStr]:
    return {name: SecretStr(a_key(name).hex()) for name in KEYS}


def named(setting: str) -> str:
    """Return what the vault calls the key of a setting."""
    return setting.removesuffix("_key")


def key_of(vault: InstallationKeys, setting: str) -> bytes:
    key: bytes = getattr(vault, named(setting))
    return key


def production(folder: Path, **given: object) -> Settings:
    """Return settings with a node and every key, but for what is given."""
    return sandbox_settings(folder, **{"rpc_url": NODE, **own_keys(), **given})


def test_the_sandboxs_accounts_have_their_public_keys(settings: Settings) -> None:
    settings.data.mkdir()
    vault = open_keys(settings, [])
    public = [
        sandbox_account(role, SANDBOX_CHAIN_ID).private_key
        for role in (
            AccountRole.OPERATOR,
            AccountRole.REGISTRAR,
            AccountRole.RELAYER,
            AccountRole.STORAGE,
        )
    ]
    assert [vault.operator, vault.registrar, vault.relayer, vault.storage] == public


def test_a_sandboxs_master_key_is_made_once_and_kept(settings: Settings) -> None:
    settings.data.mkdir()
    made = open_keys(settings, []).master
    assert open_keys(settings, []).master == made
    assert (settings.data / MASTER_KEY_FILE).read_bytes() == made
    assert len(made) == 32


def test_only_its_owner_may_read_the_kept_master_key(settings: Settings) -> None:
    settings.data.mkdir()
    open_keys(settings, [named("master_key")])
    (kept,) = settings.data.iterdir()
    assert (kept.name, stat.S_IMODE(kept.stat().st_mode)) == (MASTER_KEY_FILE, 0o600)


def test_every_sandbox_has_a_master_key_of_its_own(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    one, other = (open_keys(sandbox_settings(tmp_path, data=folder), []) for folder in folders)
    assert one.master != other.master


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_a_kept_master_key_of_another_length_is_refused(settings: Settings, content: bytes) -> None:
    """An empty one would let everybody derive everybody's credentials."""
    settings.data.mkdir()
    (settings.data / MASTER_KEY_FILE).write_bytes(content)
    with pytest.raises(MissingKey, match=r"FORETELL_MASTER_KEY is kept in .* 32 bytes"):
        open_keys(settings, [named("master_key")])


def test_a_sandbox_takes_a_master_key_that_is_given_and_keeps_no_other(tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path, master_key=SecretStr("0x" + a_key("master").hex()))
    assert open_keys(settings, []).master == a_key("master")
    assert not (settings.data / MASTER_KEY_FILE).exists()


def test_public_keys_are_refused_on_any_other_chain(tmp_path: Path) -> None:
    master = SecretStr(a_key("master").hex())
    vault = open_keys(sandbox_settings(tmp_path, chain_id=137, master_key=master), [])
    with pytest.raises(SandboxOnly, match="chain 137"):
        key_of(vault, "operator_key")


def test_an_operator_gives_every_key(tmp_path: Path) -> None:
    vault = open_keys(production(tmp_path), [])
    assert {name: key_of(vault, name) for name in KEYS} == {name: a_key(name) for name in KEYS}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_no_part_asks_for_need_not_be_there(tmp_path: Path, name: str) -> None:
    vault = open_keys(
        production(tmp_path, **{**dict.fromkeys(KEYS), name: own_keys()[name]}), [named(name)]
    )
    assert key_of(vault, name) == a_key(name)


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingKey, match=f"^FORETELL_{name.upper()} is not set$"):
        open_keys(production(tmp_path, **{name: None}), [named(name)])


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("text", ["", "0x", "hunter2", "ab" * 31, "ab" * 33, "zz" * 32])
def test_a_key_that_is_none_is_refused_and_not_repeated(
    tmp_path: Path, name: str, text: str
) -> None:
    with pytest.raises(MissingKey) as refused:
        open_keys(production(tmp_path, **{name: SecretStr(text)}), [named(name)])
    assert refused.value.message == f"FORETELL_{name.upper()} is not 64 hex digits"


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("account", SANDBOX_ACCOUNTS, ids=lambda account: account.address)
def test_a_key_that_the_whole_world_knows_is_refused(
    tmp_path: Path, name: str, account: SandboxAccount
) -> None:
    public = SecretStr(account.private_key.hex())
    with pytest.raises(MissingKey, match=f"FORETELL_{name.upper()} is one of the sandbox's"):
        open_keys(production(tmp_path, **{name: public}), [named(name)])


@pytest.mark.parametrize(("first", "second"), [(SENDERS[0], SENDERS[1]), (SENDERS[1], SENDERS[2])])
def test_two_queues_of_transactions_never_share_an_account(
    tmp_path: Path, first: str, second: str
) -> None:
    shared = {second: own_keys()[first]}
    with pytest.raises(MissingKey, match=f"FORETELL_{second.upper()} is that of .*{first.upper()}"):
        open_keys(production(tmp_path, **shared), [])


def test_no_key_is_shown_by_the_keys_or_the_settings(tmp_path: Path) -> None:
    settings = production(tmp_path)
    shown = f"{open_keys(settings, [])!r} {settings!r} {settings}"
    assert [name for name in KEYS if a_key(name).hex() in shown] == []
    assert [name for name in KEYS if repr(a_key(name)) in shown] == []
