import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

import pytest
from tests.rigs.clock import Clock
from tests.rigs.trading import KnownChain, Trader, TradingRig
from tests.rigs.values import (
    CHAIN_ID,
    EXCHANGE,
    NEG_RISK_EXCHANGE,
    TOKEN,
    a_buy,
    a_deployment,
    a_sell,
    a_settlement,
    an_address,
    an_asset,
    an_observation,
    an_order_id,
)
from typing_extensions import override

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.wallets import Wallets
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.order import InvalidOrderNonce
from foretell.domain.exchange.commands import AllowanceSeen, BalanceSeen
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.profiles import (
    SANDBOX_NEG_RISK_PROFILES,
    SANDBOX_PROFILES,
    SigningProfile,
)
from foretell.domain.exchange.trade import TradeStatus, trade_id_of
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.store.public_reads.places import answering
from foretell.trading.accounts.accounts import OrderNonces

pytestmark = pytest.mark.anyio

UNLIMITED = str(2**256 - 1)
ALICE = an_address("alice")


@pytest.fixture
def chain() -> KnownChain:
    return KnownChain()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def nonces(chain: KnownChain, clock: Clock) -> OrderNonces:
    return OrderNonces(chain.fetch_nonce, clock.now_ms)


def test_a_safe_has_the_address_that_the_factory_gives_it() -> None:
    wallets = Wallets(a_deployment())
    assert wallets.of(ALICE)[:2] == (ALICE, a_deployment().safe_of(ALICE))
    assert wallets.safe_of(ALICE) == wallets.safe_of(ALICE) != ALICE


class CountingDeployment(Deployment):
    """A deployment that counts the Safes that it computes."""

    computed: ClassVar[list[Address]] = []

    @override
    def safe_of(self, owner: Address) -> Address:
        self.computed.append(owner)
        return super().safe_of(owner)


def test_only_a_bounded_number_of_wallets_is_kept() -> None:
    plain = a_deployment()
    counting = CountingDeployment(
        **{field.name: getattr(plain, field.name) for field in dataclasses.fields(plain)}
    )
    counting.computed.clear()
    wallets = Wallets(counting, kept_max=2)
    owners = [an_address(f"owner {number}") for number in range(4)]
    first = [wallets.safe_of(owner) for owner in owners]
    assert [wallets.safe_of(owner) for owner in owners[::-1]] == first[::-1]
    assert counting.computed == [*owners, owners[1], owners[0]]


async def test_a_nonce_is_fetched_once_in_half_a_minute(
    nonces: OrderNonces, chain: KnownChain, clock: Clock
) -> None:
    for _ in range(30):
        await nonces.check(EXCHANGE, a_buy("alice"))
        clock.move(1_000)
    assert chain.nonces_fetched == 1
    await nonces.check(EXCHANGE, a_buy("alice"))
    assert chain.nonces_fetched == 2


async def test_a_nonce_that_does_not_fit_is_fetched_again_once_a_second(
    nonces: OrderNonces, chain: KnownChain, clock: Clock
) -> None:
    await nonces.check(EXCHANGE, a_buy("alice"))
    chain.nonce_by_maker[ALICE] = 1
    clock.move(999)
    with pytest.raises(InvalidOrderNonce, match="must be 0, the maker's nonce at the exchange"):
        await nonces.check(EXCHANGE, a_buy("alice", nonce=1))
    clock.move(1)
    await nonces.check(EXCHANGE, a_buy("alice", nonce=1))
    with pytest.raises(InvalidOrderNonce, match="must be 1, the maker's nonce at the exchange"):
        await nonces.check(EXCHANGE, a_buy("alice", nonce=2))
    assert chain.nonces_fetched == 2


async def test_an_old_nonce_is_refused_after_half_a_minute_at_the_latest(
    nonces: OrderNonces, chain: KnownChain, clock: Clock
) -> None:
    await nonces.check(EXCHANGE, a_buy("alice"))
    chain.nonce_by_maker[ALICE] = 1
    clock.move(29_999)
    await nonces.check(EXCHANGE, a_buy("alice"))
    clock.move(1)
    with pytest.raises(InvalidOrderNonce):
        await nonces.check(EXCHANGE, a_buy("alice"))


async def test_while_the_chain_does_not_answer_the_last_nonce_is_valid(
    nonces: OrderNonces, chain: KnownChain, clock: Clock
) -> None:
    await nonces.check(EXCHANGE, a_buy("alice"))
    chain.failure = ChainUnavailable("eth_call", "gone")
    clock.move(60_000)
    await nonces.check(EXCHANGE, a_buy("alice"))
    with pytest.raises(ChainUnavailable):
        await nonces.check(EXCHANGE, a_buy("bob"))


class SlowChain(KnownChain):
    """A chain whose answers arrive when a test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    @override
    async def fetch_nonce(self, exchange: Address, maker: Address) -> int:
        nonce = await super().fetch_nonce(exchange, maker)
        await self.may_answer.wait()
        return nonce


async def begun(clients: Sequence[str], check: Callable[[], Awaitable[None]]) -> list[Any]:
    """Begin a check for each client, and return the tasks once each waits for the chain."""
    tasks = []
    for client in clients:
        with answering(client):
            tasks.append(asyncio.ensure_future(check()))
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


@pytest.mark.parametrize(("clients", "fetched"), [("a" * 20, 1), ("ab" * 10, 2)])
async def test_orders_of_a_client_share_a_fetch_of_a_nonce_on_the_way(
    clients: str, fetched: int, clock: Clock
) -> None:
    """With a slow node each order of a key asked for itself, and they held all connections."""
    chain = SlowChain()
    nonces = OrderNonces(chain.fetch_nonce, clock.now_ms)
    tasks = await begun(clients, lambda: nonces.check(EXCHANGE, a_buy("alice", nonce=1)))
    chain.may_answer.set()
    refusals = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(each) for each in refusals} == {InvalidOrderNonce}
    assert chain.nonces_fetched == fetched


async def test_a_nonce_that_was_raised_during_a_slow_fetch_is_fetched_once_more(
    clock: Clock,
) -> None:
    chain = SlowChain()
    nonces = OrderNonces(chain.fetch_nonce, clock.now_ms)
    tasks = await begun("a", lambda: nonces.check(EXCHANGE, a_buy("alice")))
    chain.nonce_by_maker[ALICE] = 1
    clock.move(1_000)
    tasks += await begun("aa", lambda: nonces.check(EXCHANGE, a_buy("alice", nonce=1)))
    chain.may_answer.set()
    await asyncio.gather(*tasks)
    assert chain.nonces_fetched == 2


async def test_only_a_bounded_number_of_nonces_is_kept(chain: KnownChain, clock: Clock) -> None:
    nonces = OrderNonces(chain.fetch_nonce, clock.now_ms, kept_max=2)
    for number in (0, 1, 2, 3, 3, 2):
        await nonces.check(EXCHANGE, a_buy(f"maker {number}"))
    assert chain.nonces_fetched == 4
    await nonces.check(EXCHANGE, a_buy("maker 1"))
    assert chain.nonces_fetched == 5


async def balance(trader: Trader, **query: Any) -> Any:
    return await trader.get("/balance-allowance", **query)


def foreign_contracts(profiles: Sequence[SigningProfile]) -> list[str]:
    contracts = [profile.verifying_contract for profile in profiles]
    found = [checksum_address(each) for each in contracts if each is not None]
    assert len(found) == 4
    return found


@pytest.mark.case("E-05")
async def test_a_balance_is_that_of_the_chain(rig: TradingRig, alice: Trader) -> None:
    await rig.submit(
        an_observation(
            [BalanceSeen(ALICE, COLLATERAL, 12 * TOKEN)],
            [AllowanceSeen(ALICE, EXCHANGE, is_collateral=True, units=7 * TOKEN)],
            block_number=42,
        )
    )
    assert await balance(alice, asset_type="COLLATERAL") == {
        "balance": "12000000",
        "allowances": {
            checksum_address(EXCHANGE): "7000000",
            checksum_address(NEG_RISK_EXCHANGE): UNLIMITED,
            **dict.fromkeys(foreign_contracts(SANDBOX_PROFILES), "7000000"),
            **dict.fromkeys(foreign_contracts(SANDBOX_NEG_RISK_PROFILES), UNLIMITED),
        },
        "allowance": "7000000",
        "wallet": checksum_address(ALICE),
        "confirmed": "12000000",
        "pending": "0",
        "reserved": "0",
        "as_of_block": 42,
    }


async def test_a_balance_counts_unsettled_trades(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    order = a_buy("alice", price_ticks=40)
    await bob.placed(a_sell("bob", price_ticks=40))
    await alice.placed(order)
    token_id = an_asset(is_yes=True)
    query = {"asset_type": "conditional", "token_id": token_id, "signature_type": "0"}
    assert (await balance(alice, **query))["pending"] == str(10 * TOKEN)
    collateral = await balance(alice, asset_type="COLLATERAL")
    assert collateral["pending"] == str(-4 * TOKEN)
    assert int(collateral["balance"]) == 10**6 * TOKEN - 4 * TOKEN
    trade_id = trade_id_of(an_order_id(order), 0)
    await rig.submit(a_settlement(trade_id, TradeStatus.MINED))
    assert (await balance(alice, **query))["pending"] == "0"


async def test_a_balance_shows_the_part_that_orders_reserve(alice: Trader) -> None:
    await alice.placed(a_buy("alice", price_ticks=40))
    await alice.placed(a_sell("alice", price_ticks=70))
    assert (await balance(alice, asset_type="COLLATERAL"))["reserved"] == str(4 * TOKEN)
    query = {"asset_type": "CONDITIONAL", "token_id": an_asset(is_yes=True)}
    answer = await balance(alice, **query)
    assert answer["reserved"] == str(10 * TOKEN)
    assert answer["allowance"] == UNLIMITED


async def test_a_signature_type_selects_the_wallet(rig: TradingRig, alice: Trader) -> None:
    safe = rig.context.wallets.safe_of(ALICE)
    await rig.submit(
        an_observation(
            [BalanceSeen(safe, COLLATERAL, 5)],
            [AllowanceSeen(safe, EXCHANGE, is_collateral=True, units=AMOUNT_UNITS_MAX)],
        )
    )
    answer = await balance(alice, asset_type="COLLATERAL", signature_type="2")
    assert (answer["balance"], answer["wallet"]) == ("5", checksum_address(safe))
    assert answer["allowance"] == UNLIMITED


async def test_an_update_returns_the_same_balance(alice: Trader) -> None:
    query = {"asset_type": "COLLATERAL"}
    assert await alice.get("/balance-allowance/update", **query) == await balance(alice, **query)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "Invalid asset type"),
        ({"asset_type": "GOLD"}, "Invalid asset type"),
        ({"asset_type": "COLLATERAL", "signature_type": "4"}, "Invalid signature_type"),
        ({"asset_type": "COLLATERAL", "signature_type": "x"}, "Invalid signature_type"),
    ],
)
async def test_an_unknown_asset_or_wallet_is_refused(
    alice: Trader, query: dict[str, str], words: str
) -> None:
    response = await alice.send("GET", "/balance-allowance", query=query)
    assert (response.status_code, response.json()["error"]) == (400, words)


@pytest.mark.parametrize("token_id", ["", "12", "x"])
async def test_a_balance_of_an_unknown_token_is_refused(alice: Trader, token_id: str) -> None:
    query = {"asset_type": "CONDITIONAL", "token_id": token_id}
    assert (await alice.send("GET", "/balance-allowance", query=query)).status_code == 404


async def test_an_account_states_how_to_sign(rig: TradingRig) -> None:
    safe = rig.context.wallets.safe_of(ALICE)
    rig.chain.nonce_by_maker[safe] = 3
    response = await rig.client.get("/auth/account", params={"address": checksum_address(ALICE)})
    account = response.json()
    assert account["address"] == checksum_address(ALICE)
    assert (account["chainId"], account["exchange"]) == (CHAIN_ID, checksum_address(EXCHANGE))
    assert account["domains"][0] == {
        "structVersion": 1,
        "name": "Foretell Exchange",
        "version": "1",
        "chainId": CHAIN_ID,
        "verifyingContract": checksum_address(EXCHANGE),
    }
    assert [domain["name"] for domain in account["domains"]] == [
        "Foretell Exchange",
        "Polymarket CTF Exchange",
        "CTF Exchange",
    ] * 2
    own, _proxy, other, *_ = account["wallets"]
    assert own == {
        "kind": "eoa",
        "address": checksum_address(ALICE),
        "isDeployed": True,
        "signatureType": 0,
        "maker": checksum_address(ALICE),
        "signer": checksum_address(ALICE),
        "nonce": "0",
    }
    assert (other["kind"], other["maker"], other["signatureType"]) == (
        "safe",
        checksum_address(safe),
        2,
    )
    assert (other["isDeployed"], other["nonce"]) == (False, "3")
    standard, neg_risk = account["exchanges"]
    assert (standard["address"], standard["negRisk"]) == (checksum_address(EXCHANGE), False)
    assert standard["domains"] == account["domains"]
    assert (neg_risk["address"], neg_risk["negRisk"]) == (
        checksum_address(NEG_RISK_EXCHANGE),
        True,
    )
    assert [domain["verifyingContract"] for domain in neg_risk["domains"]] == [
        checksum_address(NEG_RISK_EXCHANGE),
        "0xd91E80cF2E7be2e162c6513ceD06f1dD0dA35296",
        "0xef02d1Ea5B42432C4E99C2785d1a4020d2FB24F5",
        checksum_address(NEG_RISK_EXCHANGE),
        "0xe2222d279d744050d28e00520010520000310F59",
        "0xe7FA09cA716FDf498d74AFF618d32AFeacc310aB",
    ]
    assert neg_risk["nonces"] == {
        checksum_address(ALICE): "0",
        checksum_address(safe): "3",
        **{checksum_address(each): "0" for each in rig.context.wallets.of(ALICE)[2:]},
    }
    rig.chain.contracts.add(safe)
    response = await rig.client.get("/auth/account", params={"address": ALICE})
    assert response.json()["wallets"][2]["isDeployed"] is True


async def test_nonces_of_accounts_that_anyone_asks_for_replace_none_of_orders(
    rig: TradingRig,
) -> None:
    """Of twenty thousand nonces, strangers could replace those of all who trade."""
    assert (await rig.client.get("/auth/account", params={"address": ALICE})).is_success
    assert not rig.context.nonces.is_known(EXCHANGE, a_buy("alice"))


@pytest.mark.parametrize("query", [{}, {"address": "alice"}])
async def test_an_account_without_an_address_is_refused(
    rig: TradingRig, query: dict[str, str]
) -> None:
    assert (await rig.client.get("/auth/account", params=query)).status_code == 400
