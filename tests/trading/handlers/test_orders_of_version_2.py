"""Orders of version 2 of the struct, and those of contract wallets, through the API."""

from typing import Any

import pytest
from tests.rigs.orders.version_2 import (
    KUEST_V2,
    V2_PROFILES,
    a_builder,
    a_deposit_wallet,
    a_v2_buy,
    a_v2_sell,
    a_wallet_order,
    signed_by_wallet,
    some_v2_fields,
)
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import (
    EXCHANGE,
    NOW_S,
    TOKEN,
    a_buy,
    a_deployment,
    a_sell,
    an_address,
    an_observation,
    an_order_id,
    the_separators,
)

from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.order import OrderVersionMismatch
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen, NonceSeen
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.eip712 import recover_signer
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.trading.accounts.signers import Identity, Signers

pytestmark = pytest.mark.anyio

WALLET = a_deposit_wallet("alice")
SECOND_WALLET = a_deposit_wallet("alice", 1)


@pytest.fixture
async def wallet(rig: TradingRig) -> str:
    """A deployed deposit wallet of alice's with collateral."""
    rig.chain.contracts.update({WALLET, SECOND_WALLET})
    for each in (WALLET, SECOND_WALLET):
        await rig.submit(
            an_observation(
                [BalanceSeen(each, COLLATERAL, 1_000 * TOKEN)],
                [AllowanceSeen(each, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX)],
            )
        )
    return WALLET


async def code_of(trader: Trader, order: Any, **fields: Any) -> str:
    response = await trader.place(order, **fields)
    assert response.status_code == 400, response.text
    return str(response.json()["code"])


@pytest.mark.parametrize("profile", V2_PROFILES)
async def test_an_order_of_version_2_trades_with_one_of_version_1(
    alice: Trader, bob: Trader, profile: int
) -> None:
    order = a_v2_buy("alice", price_ticks=40, profile=profile)
    placed = await alice.placed(order)
    assert (placed["orderID"], placed["status"]) == (the_separators().order_id(order), "live")
    met = await bob.placed(a_sell("bob", price_ticks=40))
    assert (met["status"], met["makingAmount"], met["takingAmount"]) == ("matched", "10", "4")


async def test_an_order_of_version_2_is_read_as_it_was_placed(alice: Trader) -> None:
    v2 = some_v2_fields(builder=a_builder(7), metadata=a_builder(8))
    order = a_v2_buy("alice", expiration_s=NOW_S + 500, v2=v2)
    placed = await alice.placed(order, "GTD")
    read = await alice.get(f"/data/order/{placed['orderID']}")
    assert (read["order_type"], read["expiration"]) == ("GTD", str(NOW_S + 500))


async def test_an_order_of_version_2_sent_again_gets_its_first_answer(alice: Trader) -> None:
    order = a_v2_buy("alice")
    first = await alice.placed(order)
    again = await alice.placed(order)
    assert (again["orderID"], again["replayed"]) == (first["orderID"], True)


async def test_no_nonce_ends_an_order_of_version_2(rig: TradingRig, alice: Trader) -> None:
    resting = await alice.placed(a_v2_buy("alice", price_ticks=10))
    raised = an_observation(nonces=[NonceSeen(EXCHANGE, an_address("alice"), 5)])
    await rig.submit(raised)
    later = await alice.placed(a_v2_buy("alice", price_ticks=11))
    live = {each["id"] for each in (await alice.get("/data/orders"))["data"]}
    assert live == {resting["orderID"], later["orderID"]}


async def test_an_order_of_version_2_signs_no_fee(alice: Trader) -> None:
    assert (await alice.placed(a_v2_buy("alice"), changed={"feeRateBps": "77"}))["success"]


async def test_a_changed_field_of_version_2_is_not_what_was_signed(alice: Trader) -> None:
    for changed in (
        {"timestamp": "1"},
        {"metadata": a_builder()},
        {"builder": a_builder()},
        {"salt": 99},
    ):
        assert await code_of(alice, a_v2_buy("alice"), changed=changed) == "signer_mismatch"


async def test_a_deployment_without_version_2_names_the_version_and_the_domains() -> None:
    def recover(digest: bytes, signature: bytes, settle: Any) -> None:
        settle(recover_signer(digest, signature))

    profiles = a_deployment().profiles[:1]
    signers = Signers(lambda _: profiles, 80002, recover)
    answers: list[Identity | ForetellError | None] = []
    signers.begin_identifying(a_v2_buy(), EXCHANGE, answers.append)
    assert answers == [None]
    with pytest.raises(OrderVersionMismatch, match="has version 2 of the struct") as refused:
        await signers.identify(a_v2_buy(), EXCHANGE)
    assert refused.value.details == {
        "served": [1],
        "domains": [
            {
                "structVersion": 1,
                "name": "Foretell Exchange",
                "version": "1",
                "chainId": 80002,
                "verifyingContract": checksum_address(EXCHANGE),
            }
        ],
    }


@pytest.mark.usefixtures("wallet")
@pytest.mark.parametrize("maker", [WALLET, SECOND_WALLET])
@pytest.mark.parametrize("profile", V2_PROFILES)
async def test_a_deposit_wallet_trades_with_an_address(
    alice: Trader, bob: Trader, maker: str, profile: int
) -> None:
    order = a_wallet_order("alice", maker, price_ticks=40, profile=profile)
    placed = await alice.placed(order)
    assert placed["orderID"] == the_separators().order_id(order)
    assert (await bob.placed(a_v2_sell("bob", price_ticks=40)))["status"] == "matched"
    (trade,) = (await alice.get("/data/trades"))["data"]
    assert trade["maker_orders"][0]["maker_address"] == checksum_address(order.maker)


async def test_the_orders_of_a_deposit_wallet_are_its_owner_s(
    alice: Trader, bob: Trader, wallet: str
) -> None:
    placed = await alice.placed(a_wallet_order("alice", wallet, price_ticks=40))
    (live,) = (await alice.get("/data/orders"))["data"]
    assert (live["id"], live["maker_address"]) == (placed["orderID"], checksum_address(WALLET))
    assert (await bob.get("/data/orders"))["data"] == []
    canceled = await alice.send("DELETE", "/order", {"orderID": placed["orderID"]})
    assert canceled.json()["canceled"] == [placed["orderID"]]


@pytest.mark.usefixtures("wallet")
@pytest.mark.parametrize(
    ("prefix", "wanted"), [("KUEST_", WALLET), ("SERVICE_", WALLET), ("POLY_", SECOND_WALLET)]
)
async def test_the_balance_of_type_3_is_of_the_wallet_that_a_client_derives(
    rig: TradingRig, prefix: str, wanted: Address
) -> None:
    trader = await rig.trader("alice", prefix=prefix)
    answer = await trader.get("/balance-allowance", asset_type="COLLATERAL", signature_type="3")
    assert (answer["wallet"], answer["balance"]) == (checksum_address(wanted), "1000000000")


async def test_the_chain_is_asked_once_whether_known_code_with_the_same_owner_accepts(
    rig: TradingRig, alice: Trader, wallet: str
) -> None:
    for salt in ("1", "2", "3"):
        await alice.placed(a_wallet_order("alice", wallet, price_ticks=40, salt=salt))
    assert (rig.chain.wallets_read, rig.chain.signatures_fetched) == (1, 1)
    rig.clock.move(60_000)
    await alice.placed(a_wallet_order("alice", wallet, price_ticks=40, salt="4"))
    assert (rig.chain.wallets_read, rig.chain.signatures_fetched) == (2, 1)


async def test_a_wallet_that_is_not_deployed_is_refused_each_time(
    rig: TradingRig, alice: Trader
) -> None:
    for _ in range(2):
        assert await code_of(alice, a_wallet_order("alice", WALLET)) == "wallet_refuses"
    assert rig.chain.wallets_read == 2


async def test_a_chain_that_does_not_answer_refuses_a_wallet_for_now(
    rig: TradingRig, alice: Trader, wallet: str
) -> None:
    rig.chain.failure = ChainUnavailable("eth_call", "gone")
    response = await alice.place(a_wallet_order("alice", wallet))
    assert response.status_code == 502


async def test_an_order_of_a_wallet_that_was_placed_before_is_answered_without_the_chain(
    rig: TradingRig, alice: Trader, wallet: str
) -> None:
    order = a_wallet_order("alice", wallet)
    await alice.placed(order)
    rig.clock.move(60_000)
    rig.chain.failure = ChainUnavailable("eth_call", "gone")
    assert (await alice.placed(order))["replayed"] is True


async def test_the_wallet_of_another_owner_is_refused(alice: Trader, bob: Trader) -> None:
    order = a_wallet_order("bob", WALLET)
    assert await code_of(bob, order) == "wrong_wallet"
    assert await code_of(alice, order) == "signer_mismatch"


async def test_a_wallet_s_signature_for_another_exchange_is_refused(
    alice: Trader, wallet: str
) -> None:
    order = a_wallet_order("alice", wallet)
    foreign = order.signature[:65] + bytes(32) + order.signature[97:]
    changed = {"signature": "0x" + foreign.hex()}
    assert await code_of(alice, order, changed=changed) == "foreign_separator"


async def test_a_wallet_s_signature_of_another_order_is_refused(alice: Trader, wallet: str) -> None:
    order, other = a_wallet_order("alice", wallet), a_wallet_order("alice", wallet, salt="2")
    changed = {"signature": "0x" + other.signature.hex()}
    assert await code_of(alice, order, changed=changed) == "contents_mismatch"


async def test_a_wallet_s_owner_must_have_signed(alice: Trader, wallet: str) -> None:
    order = signed_by_wallet(a_wallet_order("alice", wallet), "bob")
    assert await code_of(alice, order) == "signer_mismatch"


async def test_a_dry_run_shows_what_a_wallet_s_signature_gives(alice: Trader, wallet: str) -> None:
    order = a_wallet_order("alice", wallet, profile=KUEST_V2)
    response = await alice.send("POST", "/order/validate", alice.body(order))
    answer = response.json()
    assert (response.status_code, answer["valid"]) == (200, True), answer
    assert [each["version"] for each in answer["signedAs"]] == ["2", "2", "2"]
    assert [each["matches"] for each in answer["signedAs"]] == [False, False, True]


async def test_an_account_lists_its_deposit_wallets(rig: TradingRig) -> None:
    response = await rig.client.get("/auth/account", params={"address": an_address("alice")})
    found = [each for each in response.json()["wallets"] if each["signatureType"] == 3]
    assert [each["address"] for each in found] == list(
        map(checksum_address, (WALLET, SECOND_WALLET))
    )
    assert [each["signer"] for each in found] == [each["maker"] for each in found]


async def test_orders_of_all_profiles_meet_in_one_book(alice: Trader, bob: Trader) -> None:
    for salt, profile in enumerate(range(6), 1):
        kind = a_buy if profile < 3 else a_v2_buy
        await alice.placed(kind("alice", price_ticks=40, profile=profile, salt=str(salt)))
    met = await bob.placed(a_v2_sell("bob", price_ticks=40, size_units=60 * TOKEN))
    assert (met["status"], met["makingAmount"]) == ("matched", "60")
    assert an_order_id(a_buy("alice", price_ticks=40)) in {
        order["order_id"]
        for trade in (await bob.get("/data/trades"))["data"]
        for order in trade["maker_orders"]
    }
