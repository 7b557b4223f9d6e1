"""Fields that a client may not set, in the body of every request that changes something."""

from typing import Any, Final, NamedTuple

import pytest
import sqlalchemy as sa
from tests.rigs.applications import openapi_document
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, a_sell, a_word, an_asset
from typing_extensions import override

from foretell.store.tables import metadata
from foretell.trading.routes.app import build_app

pytestmark = pytest.mark.anyio

COLUMNS: Final = {column.name for table in metadata.tables.values() for column in table.columns}
OTHERS: Final = {
    "isAdmin",
    "role",
    "owner",
    "feeRateBps",
    "sizeMatched",
    "__proto__",
    "constructor",
}
"""Names that no column has."""
CANARIES: Final = ("canary of a client", 7_654_321_987)
"""Values that nothing in the exchange has by itself."""


class Change(NamedTuple):
    """An operation that is no read, and the names that its document lets a client set."""

    method: str
    path: str
    documented: frozenset[str]

    @override
    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def names_in(schema: Any) -> set[str]:
    """Return the names of all properties in a schema."""
    if isinstance(schema, list):
        return set().union(*map(names_in, schema))
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", ())).union(*map(names_in, schema.values()))


def changes() -> list[Change]:
    """Return every operation of the document that is no read."""
    document = openapi_document(build_app)
    schemas: dict[str, Any] = document["components"]["schemas"]

    def resolved(part: Any) -> Any:
        if isinstance(part, list):
            return [resolved(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return resolved(schemas[part["$ref"].rpartition("/")[2]])
        return {name: resolved(each) for name, each in part.items()}

    return [
        Change(
            method.upper(),
            path,
            frozenset(names_in(resolved(operation.get("requestBody", {})))),
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method not in {"get", "head"}
    ]


CHANGES: Final = changes()


async def bodies_of(alice: Trader) -> dict[str, object]:
    """Return bodies that succeed, by operation; any other operation takes an empty object."""
    placed = [
        (await alice.placed(a_buy("alice", price_ticks=30, salt=salt)))["orderID"]
        for salt in ("11", "12")
    ]
    read_only = (await alice.send("POST", "/auth/readonly-api-key")).json()
    order, other = (alice.body(a_buy("alice", price_ticks=45, salt=salt)) for salt in ("21", "22"))
    tokens = [{"token_id": an_asset(is_yes=True), "side": "BUY"}]
    reads = ("books", "prices", "midpoints", "spreads", "last-trades-prices")
    found: dict[str, object] = {
        "POST /order": order,
        "POST /order/validate": order,
        "POST /orders": [order, other],
        "DELETE /order": {"orderID": placed[0]},
        "DELETE /orders": placed,
        "DELETE /cancel-market-orders": {"market": a_word("market"), "asset_id": ""},
        "DELETE /auth/readonly-api-key": {"key": read_only["apiKey"]},
        "POST /profile": {"name": "Alice"},
        "POST /heartbeats": {"heartbeat_id": None},
        "POST /v1/heartbeats": {"heartbeat_id": None},
        "POST /orders-scoring": placed,
    }
    return found | {f"POST /{path}": tokens for path in reads}


def planted(body: Any, documented: frozenset[str], canary: object) -> Any:
    """Return a body whose every object has every field that a client may not set."""
    if isinstance(body, list):
        return [planted(each, documented, canary) for each in body]
    if not isinstance(body, dict):
        return body
    extra = dict.fromkeys((COLUMNS | OTHERS) - documented - body.keys(), canary)
    return extra | {name: planted(each, documented, canary) for name, each in body.items()}


async def stored(rig: TradingRig) -> str:
    """Return everything that the tables and the engine have, as text."""
    await rig.settle_tables()
    rows = []
    async with rig.context.database.reading() as tx:
        for table in metadata.sorted_tables:
            rows += [tuple(row) for row in await tx.all(sa.select(table))]
    state = rig.host.engine.state
    return repr((rows, state.live_orders, state.placement_by_order))


@pytest.mark.case("G-08")
@pytest.mark.parametrize("canary", CANARIES)
@pytest.mark.parametrize("change", CHANGES, ids=str)
async def test_no_field_that_a_client_may_not_set_is_stored_or_shown(
    rig: TradingRig, alice: Trader, bob: Trader, change: Change, canary: object
) -> None:
    bodies = await bodies_of(alice)
    await bob.placed(a_sell("bob", price_ticks=45, salt="31"))
    body = bodies.get(str(change), {})
    path = change.path.format(id="1")
    answer = await alice.send(change.method, path, planted(body, change.documented, canary))
    assert answer.status_code < 500
    assert answer.status_code == 200 or str(change) not in bodies, answer.text
    text = await stored(rig)
    assert str(canary) not in text
    assert not answer.is_success or str(canary) not in answer.text


async def test_a_field_that_a_client_may_set_is_seen_in_what_is_stored(
    rig: TradingRig, alice: Trader
) -> None:
    assert (await alice.send("POST", "/profile", {"name": CANARIES[0]})).status_code == 200
    assert str(CANARIES[0]) in await stored(rig)


def test_the_changes_are_those_of_the_document() -> None:
    names = {str(each) for each in CHANGES}
    assert {"POST /order", "DELETE /order", "POST /auth/api-key", "POST /heartbeats"} <= names
    assert {"status", "fee_rate_bps", "owner"} <= COLUMNS | OTHERS
