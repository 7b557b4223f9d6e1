"""Client commands on a running sandbox: signers of every kind, output for programs, and refusals in one line."""

import json
import time
from pathlib import Path

import httpx
import pytest
from eth_account import Account
from tests.examples.conftest import Play
from tests.rigs.in_process import Call
from tests.rigs.installation import Running

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.sandbox.ready import Ready, read_ready

pytestmark = [pytest.mark.xdist_group("examples"), pytest.mark.usefixtures("folder")]

SLUG = "rain-within-a-year"
NO_ORDER = "0x" + "00" * 32
NOBODY = "0x00000000000000000000000000000000000000AA"
ANSWER_S_MAX = 600.0
"""A busy machine has taken more than ten seconds for a page of 500 markets, which is no matter of these tests."""


@pytest.fixture
def ready(example_sandbox: Running) -> Ready:
    return read_ready(example_sandbox.data)


@pytest.fixture
def base_url(example_sandbox: Running) -> str:
    return f"http://127.0.0.1:{example_sandbox.port}"


def trader_of(ready: Ready, number: int = 0) -> tuple[str, str]:
    """Return the address and the key of a trader."""
    traders = [each for each in ready.accounts if each.role == AccountRole.TRADER]
    return traders[number].address, traders[number].private_key


def test_a_keystore_signs_at_an_address_given_by_url(
    command: Play, ready: Ready, base_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, key = trader_of(ready, 5)
    keystore = Account.encrypt(bytes.fromhex(key[2:]), "open sesame", iterations=2)
    (folder / "keystore.json").write_text(json.dumps(keystore))
    monkeypatch.setenv("FORETELL_KEY_PASSWORD", "open sesame")
    options = ("--url", base_url, "--key-file", "keystore.json", "--json")
    shown = json.loads(command("wallet", "show", *options))
    assert shown["wallet"] == address


def test_a_key_file_of_hex_signs_too(
    command: Play, ready: Ready, base_url: str, folder: Path
) -> None:
    address, key = trader_of(ready, 6)
    (folder / "key").write_text(key)
    options = ("--url", base_url, "--rpc", ready.rpc, "--key-file", "key", "--json")
    assert json.loads(command("wallet", "deploy", *options)) == {"wallet": address}


def test_a_remote_signer_trades_and_sends(command: Play, ready: Ready) -> None:
    """The dev chain signs for its own accounts, as Clef and Web3Signer do."""
    address, _ = trader_of(ready, 7)
    remote = ("--signer", ready.rpc, "--address", address, "--json")
    place = ("order", "place", "buy", SLUG, "Yes", "--price", "0.11", "--size", "10")
    placed = json.loads(command(*place, *remote))
    assert placed["status"] == "live"
    (listed,) = json.loads(command("order", "list", *remote))
    assert (listed["order"], listed["side"], listed["price"]) == (placed["order"], "BUY", "0.11")
    canceled = json.loads(command("order", "cancel", placed["order"], NO_ORDER, *remote))
    assert [each["order"] for each in canceled] == [placed["order"], NO_ORDER]
    assert canceled[0]["result"] == "canceled" != canceled[1]["result"]
    assert json.loads(command("wallet", "split", SLUG, "1", *remote))["transaction"][:2] == "0x"
    proxied = json.loads(command("wallet", "deploy", "--proxy-wallet", *remote))
    shown = json.loads(command("wallet", "show", "--proxy-wallet", *remote))
    assert (shown["wallet"], shown["deployed"]) == (proxied["wallet"], True)


def test_a_watched_book_is_a_line_of_json_for_each_change(command: Play) -> None:
    command("order", "place", "buy", SLUG, "Yes", "--price", "0.12", "--size", "10")
    watch = ("book", SLUG, "Yes", "--watch", "--changes", "1", "--json")
    assert {"price": "0.12", "size": "10"} in json.loads(command(*watch))["bids"]
    assert "bid   0.12   10" in command("book", SLUG, "Yes", "--levels", "100")
    assert json.loads(command("book", SLUG, "Yes", "--json"))["neg_risk"] is False
    command("order", "cancel", "--market", SLUG)


def test_a_whitelist_is_replaced_and_shown_in_full(command: Play, ready: Ready) -> None:
    proposer = ready.account(AccountRole.PROPOSER).address
    owner = ("--as", "trader:8", "--json")
    none = json.loads(command("whitelist", "show", *owner))
    assert (none["whitelist"], none["proposers"]) == ("", [])
    made = json.loads(command("whitelist", "create", proposer, *owner))
    assert made["proposers"] == [proposer]
    assert json.loads(command("whitelist", "add", NOBODY, *owner))["proposers"] == [
        proposer,
        NOBODY,
    ]
    assert json.loads(command("whitelist", "remove", NOBODY, *owner))["proposers"] == [proposer]


def test_a_wallet_of_ones_own_is_funded_from_the_faucet(command: Play) -> None:
    funded = json.loads(command("wallet", "fund", "12.5", "--to", NOBODY, "--json"))
    assert funded == {"wallet": NOBODY, "collateral": "12.5"}


def test_create_market_url_names_another_worker(
    call: Call, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREATE_MARKET_URL", "http://127.0.0.1:1")
    called = call("whitelist", "show")
    assert called.code == 1
    assert "http://127.0.0.1:1 does not answer" in called.err
    monkeypatch.setenv("CREATE_MARKET_URL", f"{base_url}/create-market")
    assert call("whitelist", "show").code == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("order", "place", "buy", SLUG, "Yes", "--price", "0.333", "--size", "1"),
            "price_off_tick",
        ),
        (
            ("order", "place", "buy", SLUG, "Yes", "--price", "0.4", "--size", "0.000001"),
            "size must",
        ),
        (("order", "place", "buy", SLUG, "Maybe", "--price", "0.4", "--size", "1"), "no outcome"),
        (("market", "show", "no-such-market"), "no market has the slug no-such-market"),
        (("market", "resolve", SLUG, "Maybe"), "has no outcome Maybe: Yes, No"),
        (("wallet", "show", "--url", "http://127.0.0.1:1"), "no key is named"),
        (("whitelist", "add", NOBODY, "--as", "trader:4"), "foretell whitelist create"),
        (("wallet", "show", "--data", "elsewhere"), "no exchange runs on elsewhere"),
        (("whitelist", "add", "0x12"), "address must be an address"),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given[:3]),
)
def test_a_refusal_is_one_line(call: Call, words: tuple[str, ...], error: str) -> None:
    called = call(*words)
    assert (called.code, called.out) == (1, "")
    assert called.err.startswith("error: ")
    assert called.err.count("\n") == 1
    assert error in called.err


@pytest.mark.parametrize(
    "words",
    [
        ("order", "cancel"),
        ("order", "place", "hold", SLUG, "Yes", "--price", "0.4", "--size", "1"),
        ("market", "create"),
        ("wallet", "show", "--as", "trader:99"),
        ("wallet", "show", "--as", "trader:x"),
        ("wallet", "show", "--signer", "http://127.0.0.1:1"),
        ("wallet", "convert", "1", SLUG),
    ],
    ids=" ".join,
)
def test_a_wrong_use_is_explained(call: Call, words: tuple[str, ...]) -> None:
    called = call(*words)
    assert (called.code, called.out) == (2, "")
    assert "Error" in called.err


def test_the_market_of_a_search_is_listed(command: Play, base_url: str) -> None:
    rows = json.loads(command("market", "list", "rain year", "--json"))
    assert SLUG in [row["slug"] for row in rows]
    before = slugs_of(base_url)
    rows = json.loads(command("market", "list", "--limit", "500", "--json"))
    listed = [row["slug"] for row in rows]
    assert len({*listed}) == len(listed)
    assert before <= {*listed} <= slugs_of(base_url), (
        "a market of another test may be listed between"
    )


def slugs_of(base_url: str) -> set[str]:
    """Return the slugs of all markets; a read that a busy machine refuses is sent again."""
    with httpx.Client(base_url=base_url, timeout=ANSWER_S_MAX) as http:
        while (answer := http.get("/discovery/markets?limit=500")).status_code == 503:
            time.sleep(float(answer.headers["retry-after"]))
    return {row["slug"] for row in answer.json()}
