"""Constructors of valid values, which pass every check unless a field is changed.

Values are made from names: the same name is always the same key, word or market. The time is NOW_S.
"""

import itertools
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from foretell.domain.contracts.calldata import CANCEL_ORDERS, order_words
from foretell.domain.contracts.deployment import (
    ContractName,
    CreationTerms,
    DeployedContract,
    Deployment,
)
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    Command,
    ObserveChain,
    OpenMarket,
    PlaceOrder,
    TradeSeen,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import (
    MarketRules,
    OrderType,
    Side,
    SignatureType,
    SignedOrder,
    order_terms,
)
from foretell.domain.exchange.profiles import (
    SANDBOX_NEG_RISK_PROFILES,
    SANDBOX_PROFILES,
    Separators,
    separators,
)
from foretell.domain.exchange.state import State
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX, UNITS_PER_TOKEN
from foretell.domain.values.eip712 import address_of_key, sign_digest
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    ZERO_BYTES32,
    Address,
    Bytes32,
    keccak256,
    word_of,
)
from foretell.domain.values.tokens import TokenPair, token_pair

CHAIN_ID: Final = 80002
NOW_S: Final = 1_800_000_000
NOW_MS: Final = NOW_S * 1000
TOKEN: Final = UNITS_PER_TOKEN
COLLATERAL_CONTRACT: Final = Address("0x" + "c0" * 20)
EXCHANGE: Final = Address("0x" + "e1" * 20)
NEG_RISK_EXCHANGE: Final = Address("0x" + "e2" * 20)
WALLET_BEACON: Final = Address("0x74a618ebdd62ff8579a8fe94f5b888d7623b9c35")
WALLET_FACTORIES: Final = (
    Address("0x2ccdc6c5ddcd895afccd259f291de9b618a5ca6c"),
    Address("0x00000000000fb5c9adea0298d729a0cb3823cc07"),
)
PROXY_WALLET: Final = Address("0x44e999d5c2f66ef0861317f9a4805ac2e90aeb4f")
PROXY_FACTORY: Final = Address("0xab45c5a4b0c941a2f231c04c3f49182e1a254052")
SAFE_FACTORY: Final = Address("0xaacfeea03eb1561c4e67d661e40682bd20e3541b")
INIT_CODE_HASH: Final = Bytes32(
    "0x2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf"
)


def a_word(name: str) -> Bytes32:
    """Return 32 bytes for a name: a hash, a condition id, a block hash."""
    return word_of(keccak256(name.encode()))


@cache
def a_key(name: str) -> bytes:
    """Return the private key of a person."""
    return keccak256(f"the key of {name}".encode())


@cache
def an_address(name: str) -> Address:
    """Return the address that the person's key controls."""
    return address_of_key(a_key(name))


def an_owner(name: str) -> str:
    """Return the id of the API key that the person places orders with."""
    return f"key of {an_address(name)}"


@cache
def a_token_pair(market: str = "market") -> TokenPair:
    """Return both token ids of a market."""
    return token_pair(COLLATERAL_CONTRACT, a_word(market))


def an_asset(*, is_yes: bool, market: str = "market") -> AssetId:
    """Return the asset id of a token of a market."""
    pair = a_token_pair(market)
    return AssetId(str(pair.yes if is_yes else pair.no))


@cache
def the_separators(exchange: Address = EXCHANGE) -> Separators:
    """Return the domain separators of the sandbox's profiles on an exchange."""
    return separators(SANDBOX_PROFILES, CHAIN_ID, exchange)


def some_rules(
    ticks_per_one: int = 100, size_units_min: int = 5 * TOKEN, fee_rate_bps: int = 0
) -> MarketRules:
    """Return the rules of a market of the sandbox."""
    return MarketRules(ticks_per_one, size_units_min, fee_rate_bps)


def an_open_market(market: str = "market", **fields: Any) -> OpenMarket:
    """Return the command that opens a market."""
    opened = OpenMarket(
        at_ms=NOW_MS,
        condition_id=a_word(market),
        token_yes=an_asset(is_yes=True, market=market),
        token_no=an_asset(is_yes=False, market=market),
        exchange=EXCHANGE,
        rules=some_rules(),
    )
    return msgspec.structs.replace(opened, **fields)


def a_signed_order(signer: str = "alice", **fields: Any) -> SignedOrder:
    """Return an order for the first outcome of `market`, signed by the person for `exchange`.

    A `signature` among the fields is not replaced.
    """
    market = fields.pop("market", "market")
    exchange = fields.pop("exchange", EXCHANGE)
    unsigned = SignedOrder(
        salt="1",
        maker=an_address(signer),
        signer=an_address(signer),
        taker=ZERO_ADDRESS,
        token_id=an_asset(is_yes=True, market=market),
        maker_amount=5 * TOKEN,
        taker_amount=10 * TOKEN,
        expiration_s=0,
        nonce=0,
        fee_rate_bps=0,
        side=Side.BUY,
        signature_type=SignatureType.EOA,
        profile=0,
        signature=b"",
    )
    order = msgspec.structs.replace(unsigned, **fields)
    if order.signature:
        return order
    digest = the_separators(exchange).digest(order, order.profile)
    return msgspec.structs.replace(order, signature=sign_digest(digest, a_key(signer)))


def a_buy(
    signer: str = "alice",
    price_ticks: int = 50,
    size_units: int = 10 * TOKEN,
    *,
    is_yes: bool = True,
    **fields: Any,
) -> SignedOrder:
    """Return a signed BUY of a size; a price counts ticks of `ticks_per_one`, 100 if not given."""
    cost = _cost_units(size_units, price_ticks, fields.pop("ticks_per_one", 100))
    market = fields.get("market", "market")
    amounts = {"maker_amount": cost, "taker_amount": size_units, "side": Side.BUY}
    token = an_asset(is_yes=is_yes, market=market)
    return a_signed_order(signer, **{"token_id": token, **amounts, **fields})


def a_sell(
    signer: str = "bob",
    price_ticks: int = 50,
    size_units: int = 10 * TOKEN,
    *,
    is_yes: bool = True,
    **fields: Any,
) -> SignedOrder:
    """Return a signed SELL of a size; a price counts ticks of `ticks_per_one`, 100 if not given."""
    cost = _cost_units(size_units, price_ticks, fields.pop("ticks_per_one", 100))
    market = fields.get("market", "market")
    amounts = {"maker_amount": size_units, "taker_amount": cost, "side": Side.SELL}
    token = an_asset(is_yes=is_yes, market=market)
    return a_signed_order(signer, **{"token_id": token, **amounts, **fields})


def _cost_units(size_units: int, price_ticks: int, ticks_per_one: int) -> int:
    cost, rest = divmod(size_units * price_ticks, ticks_per_one)
    assert rest == 0, "the size must cost a whole number of base units"
    return cost


def a_spending(
    signer: str = "alice", price_ticks: int = 50, budget_units: int = 10 * TOKEN, **fields: Any
) -> SignedOrder:
    """Return a signed BUY that names the collateral to spend, as FOK and FAK orders do."""
    ticks_per_one = fields.pop("ticks_per_one", 100)
    size = budget_units * ticks_per_one // price_ticks
    is_yes, market = fields.pop("is_yes", True), fields.get("market", "market")
    token = an_asset(is_yes=is_yes, market=market)
    amounts = {"maker_amount": budget_units, "taker_amount": size, "token_id": token}
    return a_signed_order(signer, **amounts, **fields)


def an_order_id(order: SignedOrder, exchange: Address = EXCHANGE) -> Bytes32:
    """Return the order's id on an exchange."""
    return the_separators(exchange).order_id(order)


def a_placing(
    order: SignedOrder,
    order_type: OrderType = OrderType.GTC,
    market: OpenMarket | None = None,
    **fields: Any,
) -> PlaceOrder:
    """Return the command that places an order in a market, `an_open_market()` if none is given."""
    market = an_open_market() if market is None else market
    order_id = an_order_id(order, market.exchange)
    command = PlaceOrder(
        at_ms=NOW_MS,
        order_id=order_id,
        order=order,
        order_type=order_type,
        is_post_only=False,
        owner=f"key of {order.signer}",
        condition_id=market.condition_id,
        is_yes=order.token_id == market.token_yes,
        terms=order_terms(order, order_type, market.rules, order_id),
    )
    return msgspec.structs.replace(command, **fields)


def an_observation(
    balances: Iterable[BalanceSeen] = (),
    allowances: Iterable[AllowanceSeen] = (),
    trades: Iterable[TradeSeen] = (),
    **fields: Any,
) -> ObserveChain:
    """Return an observation of the chain at block 1."""
    seen = ObserveChain(
        at_ms=NOW_MS,
        block_number=1,
        block_hash=a_word("block 1"),
        balances=tuple(balances),
        allowances=tuple(allowances),
        trades=tuple(trades),
    )
    return msgspec.structs.replace(seen, **fields)


def a_settlement(
    trade_id: str, status: TradeStatus, tx_hash: str = "0x01", cause: str = ""
) -> ObserveChain:
    """Return the observation of a trade's status, without balances."""
    return an_observation(trades=[TradeSeen(trade_id, status, tx_hash, cause=cause)])


def some_funds(*names: str, units: int = 10**6 * TOKEN, market: str = "market") -> ObserveChain:
    """Return the observation that these people hold and allow plenty of every asset."""
    assets = (
        COLLATERAL,
        an_asset(is_yes=True, market=market),
        an_asset(is_yes=False, market=market),
    )
    return an_observation(
        [BalanceSeen(an_address(name), asset, units) for name in names for asset in assets],
        [
            AllowanceSeen(an_address(name), exchange, is_collateral, AMOUNT_UNITS_MAX)
            for name in names
            for exchange in (EXCHANGE, NEG_RISK_EXCHANGE)
            for is_collateral in (True, False)
        ],
    )


def a_state(*commands: Command) -> State:
    """Return the state after these commands, each of which must be accepted."""
    state = State()
    for command in commands:
        apply(state, command)
    return state


def a_trading_state(*names: str) -> State:
    """Return a state with one open market and funds of these people, alice and bob by default."""
    return a_state(an_open_market(), some_funds(*(names or ("alice", "bob"))))


def numbered_uuids() -> Callable[[], str]:
    """Return a maker of UUIDs that are the same in every run."""
    numbers = itertools.count(1)
    return lambda: str(uuid.UUID(int=next(numbers), version=4))


def a_deployment() -> Deployment:
    """Return a sandbox's deployment with the exchanges that orders here are signed for."""
    return Deployment(
        chain_id=CHAIN_ID,
        is_sandbox=True,
        is_complete=True,
        start_block=1,
        contracts={
            ContractName.EXCHANGE: DeployedContract(EXCHANGE, ZERO_BYTES32),
            ContractName.NEG_RISK_EXCHANGE: DeployedContract(NEG_RISK_EXCHANGE, ZERO_BYTES32),
            ContractName.SAFE_FACTORY: DeployedContract(SAFE_FACTORY, INIT_CODE_HASH),
            ContractName.DEPOSIT_WALLET_BEACON: DeployedContract(WALLET_BEACON, ZERO_BYTES32),
            ContractName.DEPOSIT_WALLET_FACTORY: DeployedContract(
                WALLET_FACTORIES[0], ZERO_BYTES32
            ),
            ContractName.SECOND_DEPOSIT_WALLET_FACTORY: DeployedContract(
                WALLET_FACTORIES[1], ZERO_BYTES32
            ),
            ContractName.PROXY_WALLET: DeployedContract(PROXY_WALLET, ZERO_BYTES32),
            ContractName.PROXY_WALLET_FACTORY: DeployedContract(PROXY_FACTORY, ZERO_BYTES32),
        },
        profiles=SANDBOX_PROFILES,
        safe_factory_name="Contract Proxy Factory",
        safe_init_code_hash=INIT_CODE_HASH,
        creation=CreationTerms(5_000_000, 2_000_000, 8_000),
        neg_risk_profiles=SANDBOX_NEG_RISK_PROFILES,
    )


def encode_cancel_orders(orders: Sequence[SignedOrder]) -> bytes:
    """Return the calldata by which a maker cancels orders on chain."""
    return CANCEL_ORDERS.encode([order_words(order) for order in orders])
