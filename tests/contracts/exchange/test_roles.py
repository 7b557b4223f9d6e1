import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import Fill, World
from tests.contracts.signing import UNIT

ROLES = [
    ("addOperator", "removeOperator", "isOperator", "NewOperator", "RemovedOperator"),
    ("addRegistrar", "removeRegistrar", "isRegistrar", "NewRegistrar", "RemovedRegistrar"),
]


@pytest.mark.parametrize(("add", "remove", "has", "added", "removed"), ROLES)
def test_the_admin_grants_and_revokes_roles(
    world: World, add: str, remove: str, has: str, added: str, removed: str
) -> None:
    exchange, account = world.exchange, world.evm.actor("account").address
    assert not exchange.call(has, account)
    given = exchange.send(add, account, sender=world.admin)
    assert exchange.call(has, account)
    assert [set(log.values()) for log in exchange.logs(given, f"{added}(address,address)")] == [
        {account, world.admin}
    ]
    taken = exchange.send(remove, account, sender=world.admin)
    assert not exchange.call(has, account)
    assert [set(log.values()) for log in exchange.logs(taken, f"{removed}(address,address)")] == [
        {account, world.admin}
    ]


@pytest.mark.parametrize(
    "name",
    ["addOperator", "removeOperator", "addRegistrar", "removeRegistrar"],
)
@pytest.mark.parametrize("role", ["operator", "registrar", "fee_receiver"])
def test_only_the_admin_grants_and_revokes_roles(world: World, name: str, role: str) -> None:
    caller = getattr(world, role)
    with reverts("NotAdmin"):
        world.exchange.send(name, caller, sender=caller)


@pytest.mark.parametrize("role", ["admin", "registrar", "fee_receiver", "oracle"])
def test_match_orders_is_for_operators_alone(world: World, role: str) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    args = (bid.fields, [ask.fields], UNIT // 2, [UNIT], 0, [0])
    with reverts("NotOperator"):
        world.exchange.send("matchOrders", *args, sender=getattr(world, role))


def test_a_removed_operator_cannot_match(world: World) -> None:
    world.exchange.send("removeOperator", world.operator, sender=world.admin)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    with reverts("NotOperator"):
        world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))


def test_an_admin_that_adds_itself_as_operator_may_match(world: World) -> None:
    world.exchange.send("addOperator", world.admin, sender=world.admin)
    bid = world.buy(world.taker, world.yes, UNIT, 50)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50)
    args = (bid.fields, [ask.fields], UNIT // 2, [UNIT], 0, [0])
    world.exchange.send("matchOrders", *args, sender=world.admin)
