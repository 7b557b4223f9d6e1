"""Metrics of markets: token holders, open interest and traded volume."""

from collections.abc import Sequence
from typing import Final

from foretell.data.context import DataContext
from foretell.data.parameters import MARKET
from foretell.data.profiles import show_profiles
from foretell.data.responses import HolderResponse, LiveVolume, MarketValue, TokenHolders
from foretell.domain.errors.http import MalformedQuery, MissingParameter
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Bytes32, checksum_address
from foretell.edge.parameters import (
    ID_MAX,
    integer,
    optional_integer,
    required_conditions,
    units_or,
)
from foretell.edge.query import Query
from foretell.edge.rendering import amount
from foretell.store.index.balances import Balance, load_holders, load_locked, load_most_locked
from foretell.store.index.conditions import load_conditions
from foretell.store.queries.captions import (
    load_conditions_of_events,
)
from foretell.store.trading.volumes import load_volumes

HOLDERS_PER_ANSWER_MAX: Final = 10_000
"""If a query names many markets, their tokens share this number of holders equally."""

OPEN_INTERESTS_MAX: Final = 500

MARKETS: Final = required_conditions("market", MARKET.about)
HOLDERS_LIMIT: Final = integer("limit", 100, 0, 500, "holders of each token")
MIN_BALANCE: Final = units_or("minBalance", "least balance", default=1)
EVENT_ID: Final = optional_integer("id", 1, ID_MAX, "event id, in place of market")

HOLDERS_PARAMETERS: Final = (MARKETS, HOLDERS_LIMIT, MIN_BALANCE)
OPEN_INTEREST_PARAMETERS: Final = (MARKET,)
LIVE_VOLUME_PARAMETERS: Final = (MARKET, EVENT_ID)


async def list_holders(context: DataContext, query: Query) -> list[TokenHolders]:
    """Return the holders of each outcome token of some markets, the largest first."""
    condition_ids = list(dict.fromkeys(query.read(MARKETS)))
    limit, units_min = query.read(HOLDERS_LIMIT), query.read(MIN_BALANCE)
    query.check_known()
    limit = min(limit, HOLDERS_PER_ANSWER_MAX // (2 * len(condition_ids)))
    async with context.database.public_reading() as tx:
        known = {row.condition_id: row for row in await load_conditions(tx, condition_ids)}
        tokens = [
            (index, token_id)
            for condition in (known[wanted] for wanted in condition_ids if wanted in known)
            for index, token_id in enumerate((condition.token_yes, condition.token_no))
        ]
        held = await load_holders(
            tx, [token_id for _, token_id in tokens], units_min=units_min, limit=limit
        )
        rows = [
            row
            for index, token_id in tokens
            for row in _holders(token_id, index, held.get(token_id, ()))
        ]
        shown = await show_profiles(tx, rows)
    rows_by_token: dict[str, list[HolderResponse]] = {token_id: [] for _, token_id in tokens}
    for row in shown:
        rows_by_token[row.asset].append(row)
    return [TokenHolders(token=token_id, holders=rows) for token_id, rows in rows_by_token.items()]


async def list_open_interests(context: DataContext, query: Query) -> list[MarketValue]:
    """Return the collateral locked in some conditions, or in those with the most of it."""
    condition_ids = list(dict.fromkeys(query.read(MARKET)))
    query.check_known()
    async with context.database.public_reading() as tx:
        if not condition_ids:
            most = await load_most_locked(tx, OPEN_INTERESTS_MAX)
            return [_market_value(locked.condition_id, locked.units) for locked in most]
        known = {condition.condition_id for condition in await load_conditions(tx, condition_ids)}
        units_by_condition = {
            locked.condition_id: locked.units for locked in await load_locked(tx, condition_ids)
        }
    return [
        _market_value(condition_id, units_by_condition.get(condition_id, 0))
        for condition_id in condition_ids
        if condition_id in known
    ]


async def list_live_volumes(context: DataContext, query: Query) -> list[LiveVolume]:
    """Return the volume of each of an event's or some markets since they opened, and the total."""
    event_id = query.read(EVENT_ID)
    condition_ids: Sequence[Bytes32] = list(dict.fromkeys(query.read(MARKET)))
    query.check_known()
    if event_id is None and not condition_ids:
        raise MissingParameter("market or id")
    if event_id is not None and condition_ids:
        raise MalformedQuery("id", "absent if market is given")
    async with context.database.public_reading() as tx:
        if event_id is not None:
            condition_ids = await load_conditions_of_events(tx, [event_id])
        units_by_condition = await load_volumes(tx, condition_ids)
    markets = [
        _market_value(condition_id, units_by_condition[condition_id])
        for condition_id in condition_ids
        if condition_id in units_by_condition
    ]
    return [LiveVolume(total=amount(sum(units_by_condition.values())), markets=markets)]


def _market_value(condition_id: Bytes32, units: int) -> MarketValue:
    return MarketValue(market=condition_id, value=amount(units))


def _holders(token_id: AssetId, index: int, held: Sequence[Balance]) -> list[HolderResponse]:
    return [
        HolderResponse(
            proxy_wallet=checksum_address(balance.wallet),
            asset=token_id,
            amount=amount(balance.units),
            outcome_index=index,
        )
        for balance in held
    ]
