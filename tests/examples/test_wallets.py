"""The SDK trades for every wallet of a signer, by every struct that the wallet can sign."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.examples.conftest import EXAMPLES, WITHIN_S, Play
from tests.rigs.in_process import Call
from tests.rigs.installation import Running

from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.errors.command import NoSuchWallet, StructNotAccepted
from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.sandbox.ready import read_ready
from foretell.sdk.blocking import BlockingForetell, connect
from foretell.sdk.client import KeySigner, OrderDraft, Urls

pytestmark = [pytest.mark.xdist_group("examples"), pytest.mark.usefixtures("folder")]

SLUG = "rain-within-a-year"
TRADER, OTHER_TRADER = 4, 6
BUILDER = "0x" + "ab" * 32


class Clients:
    """Clients of traders, by the wallet that they trade for."""

    def __init__(self, sandbox: Running, stack: ExitStack) -> None:
        ready = read_ready(sandbox.data)
        traders = [each for each in ready.accounts if each.role == AccountRole.TRADER]
        self._signers = {number: KeySigner(each.key) for number, each in enumerate(traders, 1)}
        self._urls = Urls.from_ready(sandbox.data, {})
        self._stack = stack

    def of(self, wallet: str, trader: int = TRADER) -> BlockingForetell:
        """Return the client for a wallet."""
        opened = connect(self._urls, self._signers[trader], wallet=wallet)
        return self._stack.enter_context(opened)


@pytest.fixture
def clients(example_sandbox: Running) -> Iterator[Clients]:
    with ExitStack() as stack:
        yield Clients(example_sandbox, stack)


def a_bid(client: BlockingForetell, **fields: object) -> OrderDraft:
    token = client.apis.discovery.market(SLUG).token("Yes")
    given = {"token_id": token, "side": Side.BUY, "price": "0.05", "size": "10"}
    return OrderDraft(**{**given, **fields})  # type: ignore[arg-type]


def test_a_deposit_wallet_is_deployed_and_funded_and_trades_by_commands(
    command: Play, clients: Clients
) -> None:
    own = ("--as", f"trader:{TRADER}", "--deposit-wallet", "--json")
    wallet = json.loads(command("wallet", "deploy", *own))["wallet"]
    assert json.loads(command("wallet", "deploy", *own))["wallet"] == wallet
    command("wallet", "fund", "100", *own)
    split = json.loads(command("wallet", "split", SLUG, "20", *own))
    assert split["transaction"].startswith("0x")

    client = clients.of("deposit wallet")
    assert client.trader.maker == wallet.lower()
    placed = client.trader.place(a_bid(client, builder=BUILDER))
    assert placed.status == "live"
    row = client.trader.open_orders(id=placed.order_id)[0]
    assert (row.id, row.price, row.original_size) == (placed.order_id, "0.05", "10")
    assert client.trader.cancel(placed.order_id).canceled == [placed.order_id]


def test_a_proxy_wallet_is_made_by_its_approvals_and_trades_by_commands(
    command: Play, clients: Clients
) -> None:
    own = ("--as", f"trader:{TRADER}", "--proxy-wallet", "--json")
    command("wallet", "fund", "100", *own)
    assert json.loads(command("wallet", "show", *own))["deployed"] is False
    wallet = json.loads(command("wallet", "deploy", *own))["wallet"]
    shown = json.loads(command("wallet", "show", *own))
    assert (shown["wallet"], shown["deployed"], shown["collateral"]) == (wallet, True, "100")
    split = json.loads(command("wallet", "split", SLUG, "20", *own))
    assert split["transaction"].startswith("0x")
    place = ("order", "place", "buy", SLUG, "Yes", "--price", "0.05", "--size", "10")
    placed = json.loads(command(*place, *own))
    assert placed["status"] == "live"
    order = clients.of("proxy wallet").trader.order(placed["order"])
    assert (order.price, order.original_size) == ("0.05", "10")
    canceled = json.loads(command("order", "cancel", placed["order"], *own))
    assert canceled == [{"order": placed["order"], "result": "canceled"}]


@pytest.mark.parametrize("version", [1, 2])
def test_orders_of_both_structs_of_a_proxy_wallet_are_matched_and_settled(
    command: Play, clients: Clients, version: int
) -> None:
    proxy, other = clients.of("proxy wallet"), clients.of("eoa", OTHER_TRADER)
    proxy.deploy_wallet()
    command("wallet", "fund", "10", "--as", f"trader:{TRADER}", "--proxy-wallet")
    until_it_can_pay(proxy, 10 * UNITS_PER_TOKEN)
    token = other.apis.discovery.market(SLUG).token("No")
    offered = other.trader.buy(token, price="0.50", size="8")
    proxy.trader.struct_version = version
    taken = proxy.trader.place(a_bid(proxy, price="0.50", size="8"))
    assert taken.status == "matched"
    settled = proxy.trader.wait_until_settled(taken.order_id)
    assert {each.status for each in settled} == {"CONFIRMED"}
    other.trader.cancel(offered.order_id)


def until_it_can_pay(client: BlockingForetell, units: int) -> None:
    """Wait until trading has seen a wallet's collateral and its allowance, a block after the chain."""
    give_up_at_s = time.monotonic() + WITHIN_S
    while min(int((seen := client.trader.collateral()).balance), int(seen.allowance)) < units:
        assert time.monotonic() < give_up_at_s, seen
        time.sleep(0.2)


def test_two_wallets_are_refused(call: Call) -> None:
    called = call("wallet", "show", "--safe", "--proxy-wallet")
    assert called.code != 0
    assert "--safe and --proxy-wallet are 2 wallets: name one" in " ".join(called.err.split())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("order_type", list(OrderType))
def test_an_address_signs_both_structs_for_every_order_type(
    clients: Clients, version: int, order_type: OrderType
) -> None:
    client = clients.of("eoa")
    client.trader.struct_version = version
    is_resting = order_type in {OrderType.GTC, OrderType.GTD}
    expires_at_s = 0
    if order_type is OrderType.GTD:
        expires_at_s = client.apis.markets.server_time() + 86_400
    fields = {"order_type": order_type, "expires_at_s": expires_at_s}
    if not is_resting:
        fields |= {"size": None, "budget": "1"}
    draft = a_bid(client, **fields)
    signed = client.trader.sign(draft)
    answer = client.trader.send("POST", "/order/validate", signed.body)
    named = {"taker", "nonce", "feeRateBps"} if version == 1 else {"timestamp", "builder"}
    assert named <= set(signed.body["order"])
    passed = {row["rule"] for row in answer["rules"] if row["pass"]}
    assert {"fields", "signer", "signature", "terms", "expiration", "nonce"} <= passed
    assert answer["orderHash"] == signed.order_id


RESTING = {"GTC": OrderType.GTC, "GTD": OrderType.GTD, "post-only": OrderType.GTC}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", RESTING)
def test_orders_of_both_structs_that_rest_are_placed_and_canceled(
    clients: Clients, version: int, name: str
) -> None:
    client, order_type = clients.of("eoa"), RESTING[name]
    client.trader.struct_version = version
    expires_at_s = client.apis.markets.server_time() + 86_400 if name == "GTD" else 0
    is_post_only = name == "post-only"
    draft = a_bid(
        client, order_type=order_type, expires_at_s=expires_at_s, is_post_only=is_post_only
    )
    placed = client.trader.place(draft)
    assert placed.status == "live"
    row = client.trader.order(placed.order_id)
    assert (row.order_type, row.size_matched) == (order_type, "0")
    assert client.trader.cancel(placed.order_id).canceled == [placed.order_id]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("order_type", [OrderType.FOK, OrderType.FAK])
def test_orders_of_both_structs_that_take_are_matched_and_settled(
    clients: Clients, version: int, order_type: OrderType
) -> None:
    taker, maker = clients.of("eoa"), clients.of("eoa", OTHER_TRADER)
    token = maker.apis.discovery.market(SLUG).token("No")
    offered = maker.trader.buy(token, price="0.50", size="8")
    taker.trader.struct_version = version
    draft = a_bid(taker, order_type=order_type, price="0.50", size=None, budget="4")
    taken = taker.trader.place(draft)
    assert taken.status == "matched"
    settled = taker.trader.wait_until_settled(taken.order_id)
    assert {each.status for each in settled} == {"CONFIRMED"}
    maker.trader.cancel(offered.order_id)


def test_a_struct_that_the_wallet_cannot_sign_is_refused_before_it_is_sent(
    clients: Clients,
) -> None:
    client = clients.of("deposit wallet")
    client.trader.struct_version = 1
    with pytest.raises(StructNotAccepted, match="version 1 is not accepted here; accepted: 2"):
        client.trader.sign(a_bid(client))


def test_a_wallet_that_an_installation_has_not_is_refused_with_those_that_it_has(
    clients: Clients,
) -> None:
    with pytest.raises(NoSuchWallet, match="eoa, proxy wallet, safe, deposit wallet"):
        clients.of("proxy")


def test_a_no_of_an_event_is_converted_into_the_yes_of_the_other_market(
    command: Play, folder: Path
) -> None:
    event = json.loads((EXAMPLES / "election.json").read_text())
    event |= {"title": "Who converts?", "slug": "who-converts"}
    for option in event["options"]:
        option |= {"question": f"Does {option['title']} convert?"}
    (folder / "event.json").write_text(json.dumps(event))
    made = json.loads(command("market", "create", "event.json", "--json"))
    own = ("--as", "trader:5", "--json")
    command("wallet", "split", made[0]["condition"], "10", *own)
    converted = json.loads(command("wallet", "convert", "4", made[0]["condition"], *own))
    assert converted["transaction"].startswith("0x")

    wanted = {("anna", "Yes"): 10, ("anna", "No"): 6, ("ben", "Yes"): 4}
    give_up_at_s = time.monotonic() + WITHIN_S
    while (held := holdings(command, own)) != wanted:
        assert time.monotonic() < give_up_at_s, held
        time.sleep(0.2)


def holdings(command: Play, own: tuple[str, ...]) -> dict[tuple[str, str], float]:
    """Return the sizes that a trader holds of the event, by option and outcome."""
    rows = json.loads(command("wallet", "show", *own))["positions"]
    return {
        (row["market"].removeprefix("who-converts-"), row["outcome"]): float(row["size"])
        for row in rows
        if row["market"].startswith("who-converts")
    }
