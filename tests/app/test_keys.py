import itertools
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.rigs.in_process import sandbox_settings
from tests.rigs.values import a_key

from foretell.app.keys import MASTER_KEY_FILE, open_keys
from foretell.app.roles import KeyName
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

NO_KEYS: frozenset[KeyName] = frozenset()

KEYS = tuple(name for name in KeyName if name is not KeyName.ADMIN)
NODE = SecretStr("http://127.0.0.1:1")

OPTIMIZED = """
import sys
from foretell.app.keys import open_keys
from foretell.app.roles import KeyName
from foretell.domain.errors.command import MissingKey
from foretell.settings import Settings

assert False, "this process does not run under -O"
try:
    open_keys(Settings(rpc_url="http://127.0.0.1:1"), frozenset({KeyName.RELAYER}))
except MissingKey as refusal:
    print(refusal.message)
"""


def own_keys() -> dict[str, SecretStr]:
    return {name: SecretStr(a_key(name).hex()) for name in KEYS}


def production(folder: Path, **given: object) -> Settings:
    """Return settings with a node and every key, but for what is given."""
    return sandbox_settings(folder, **{"rpc_url": NODE, **own_keys(), **given})


def test_the_sandboxs_accounts_have_their_public_keys(settings: Settings) -> None:
    settings.data.mkdir()
    keys = open_keys(settings, NO_KEYS)
    public = [
        sandbox_account(role, SANDBOX_CHAIN_ID).private_key
        for role in (
            AccountRole.OPERATOR,
            AccountRole.REGISTRAR,
            AccountRole.RELAYER,
            AccountRole.STORAGE,
        )
    ]
    assert [keys.operator, keys.registrar, keys.relayer, keys.storage] == public


def test_a_sandboxs_master_key_is_made_once_and_kept(settings: Settings) -> None:
    settings.data.mkdir()
    made = open_keys(settings, NO_KEYS).master
    assert open_keys(settings, NO_KEYS).master == made
    assert (settings.data / MASTER_KEY_FILE).read_bytes() == made
    assert len(made) == 32


def test_only_its_owner_may_read_the_kept_master_key(settings: Settings) -> None:
    settings.data.mkdir()
    open_keys(settings, frozenset({KeyName.MASTER}))
    (kept,) = settings.data.iterdir()
    assert (kept.name, stat.S_IMODE(kept.stat().st_mode)) == (MASTER_KEY_FILE, 0o600)


def test_every_sandbox_has_a_master_key_of_its_own(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    one, other = (open_keys(sandbox_settings(tmp_path, data=folder), NO_KEYS) for folder in folders)
    assert one.master != other.master


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_a_kept_master_key_of_another_length_is_refused(settings: Settings, content: bytes) -> None:
    """With an empty key every credential could be derived."""
    settings.data.mkdir()
    (settings.data / MASTER_KEY_FILE).write_bytes(content)
    with pytest.raises(MissingKey, match=r"FORETELL_MASTER_KEY is kept in .* 32 bytes"):
        open_keys(settings, frozenset({KeyName.MASTER}))


def test_a_sandbox_takes_a_master_key_that_is_given_and_keeps_no_other(tmp_path: Path) -> None:
    settings = sandbox_settings(tmp_path, master_key=SecretStr("0x" + a_key("master").hex()))
    assert open_keys(settings, NO_KEYS).master == a_key("master")
    assert not (settings.data / MASTER_KEY_FILE).exists()


def test_public_keys_are_refused_on_any_other_chain(tmp_path: Path) -> None:
    master = SecretStr(a_key("master").hex())
    keys = open_keys(sandbox_settings(tmp_path, chain_id=137, master_key=master), NO_KEYS)
    with pytest.raises(SandboxOnly, match="chain 137"):
        keys.key(KeyName.OPERATOR)


def test_an_operator_gives_every_key(tmp_path: Path) -> None:
    keys = open_keys(production(tmp_path), NO_KEYS)
    assert {name: keys.key(name) for name in KEYS} == {name: a_key(name) for name in KEYS}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_no_product_needs_may_be_missing(tmp_path: Path, name: KeyName) -> None:
    alone = {each: secret if each == name else None for each, secret in own_keys().items()}
    keys = open_keys(production(tmp_path, **alone), frozenset({name}))
    assert keys.key(name) == a_key(name)


@pytest.mark.parametrize("name", KeyName)
def test_a_key_that_is_missing_is_named(tmp_path: Path, name: KeyName) -> None:
    with pytest.raises(MissingKey, match=f"^FORETELL_{name.upper()} is not set$"):
        open_keys(production(tmp_path, **{name: None}), frozenset({name}))


def test_a_missing_key_is_refused_without_assertions(tmp_path: Path) -> None:
    command = [sys.executable, "-O", "-c", OPTIMIZED]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("FORETELL_RELAYER_KEY is not set\n", "")


@pytest.mark.parametrize("name", KeyName)
@pytest.mark.parametrize("text", ["", "0x", "hunter2", "ab" * 31, "ab" * 33, "zz" * 32])
def test_a_malformed_key_is_refused_and_not_repeated(
    tmp_path: Path, name: KeyName, text: str
) -> None:
    with pytest.raises(MissingKey) as refused:
        open_keys(production(tmp_path, **{name: SecretStr(text)}), frozenset({name}))
    assert refused.value.message == f"FORETELL_{name.upper()} is not 64 hex digits"


@pytest.mark.case("J-03")
@pytest.mark.parametrize("name", KeyName)
@pytest.mark.parametrize("account", SANDBOX_ACCOUNTS, ids=lambda account: account.address)
def test_a_public_key_is_refused(tmp_path: Path, name: KeyName, account: SandboxAccount) -> None:
    public = SecretStr(account.private_key.hex())
    with pytest.raises(MissingKey, match=f"FORETELL_{name.upper()} is one of the sandbox's"):
        open_keys(production(tmp_path, **{name: public}), frozenset({name}))


@pytest.mark.case("J-03")
@pytest.mark.parametrize(("first", "second"), list(itertools.pairwise((*KeyName, KeyName.MASTER))))
def test_attack_l1_no_key_has_two_purposes(tmp_path: Path, first: KeyName, second: KeyName) -> None:
    """Two queues of transactions never share an account, and API credentials come from no account's key."""
    shared = SecretStr(a_key("shared").hex())
    given = {first: shared, second: shared}
    names = "|".join(name.upper() for name in given)
    with pytest.raises(MissingKey, match=f"FORETELL_({names}) is that of FORETELL_({names})"):
        open_keys(production(tmp_path, **given), NO_KEYS)


@pytest.mark.parametrize("name", KeyName)
@pytest.mark.parametrize("text", ["00" * 32, "ff" * 32, "0123456789ab" + "00" * 26])
def test_attack_l1_a_key_that_was_not_made_at_random_is_refused(
    tmp_path: Path, name: KeyName, text: str
) -> None:
    with pytest.raises(MissingKey, match=f"FORETELL_{name.upper()} repeats itself"):
        open_keys(production(tmp_path, **{name: SecretStr(text)}), NO_KEYS)


FURTHER = [a_key(f"further {number}").hex() for number in range(8)]


def test_further_operators_keys_are_separated_by_commas(tmp_path: Path) -> None:
    settings = production(tmp_path, operator_keys=SecretStr(f"{FURTHER[0]}, 0x{FURTHER[1]}"))
    keys = open_keys(settings, NO_KEYS)
    assert keys.further_operators == (a_key("further 0"), a_key("further 1"))
    assert FURTHER[0] not in f"{settings!r}"
    assert open_keys(production(tmp_path), NO_KEYS).further_operators == ()
    assert open_keys(sandbox_settings(tmp_path), NO_KEYS).further_operators == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not 64 hex digits"),
        (f"{FURTHER[0]},", "is not 64 hex digits"),
        (SANDBOX_ACCOUNTS[0].private_key.hex(), "is one of the sandbox's keys"),
        ("ab" * 32, "repeats itself"),
        (f"{FURTHER[0]},{FURTHER[0]}", "is that of FORETELL_OPERATOR_KEYS"),
        (f"{FURTHER[0]},{a_key(KeyName.RELAYER).hex()}", "is that of FORETELL_RELAYER_KEY"),
        (",".join(FURTHER), "has 8 keys, above 7"),
    ],
)
def test_further_operators_keys_that_cannot_be_used_are_refused(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(MissingKey, match=f"FORETELL_OPERATOR_KEYS {why}"):
        open_keys(production(tmp_path, operator_keys=SecretStr(text)), NO_KEYS)


def test_no_key_is_shown_by_the_keys_or_the_settings(tmp_path: Path) -> None:
    settings = production(tmp_path)
    shown = f"{open_keys(settings, NO_KEYS)!r} {settings!r} {settings}"
    assert [name for name in KEYS if a_key(name).hex() in shown] == []
    assert [name for name in KEYS if repr(a_key(name)) in shown] == []
