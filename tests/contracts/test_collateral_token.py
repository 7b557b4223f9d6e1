import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import ALLOWANCE_MAX, World
from tests.contracts.signing import UNIT, ZERO


@pytest.fixture
def alice(world: World) -> str:
    alice = world.evm.actor("alice").address
    world.collateral.send("mint", alice, 100 * UNIT, sender=world.minter)
    return alice


@pytest.fixture
def bob(world: World) -> str:
    return world.evm.actor("bob").address


def test_it_is_named_at_deployment_and_has_six_decimals(world: World) -> None:
    token = world.collateral
    assert token.call("name") == "Sandbox Dollar"
    assert token.call("symbol") == "USDS"
    assert token.call("decimals") == 6
    assert token.call("minter") == world.minter


def test_mint_creates_tokens_and_logs_it(world: World, bob: str) -> None:
    supply = world.collateral.call("totalSupply")
    receipt = world.collateral.send("mint", bob, 7, sender=world.minter)
    assert world.collateral.call("balanceOf", bob) == 7
    assert world.collateral.call("totalSupply") == supply + 7
    assert world.collateral.logs(receipt, "Transfer(address,address,uint256)") == [
        {"sender": ZERO, "receiver": bob, "amount": 7}
    ]


def test_mint_is_for_the_minter_alone(world: World, bob: str) -> None:
    with reverts("NotMinter"):
        world.collateral.send("mint", bob, 1, sender=bob)


def test_mint_refuses_the_zero_address(world: World) -> None:
    with reverts("ZeroAddress"):
        world.collateral.send("mint", ZERO, 1, sender=world.minter)


def test_transfer_moves_tokens_and_logs_it(world: World, alice: str, bob: str) -> None:
    receipt = world.collateral.send("transfer", bob, 30 * UNIT, sender=alice)
    assert world.collateral.call("balanceOf", alice) == 70 * UNIT
    assert world.collateral.call("balanceOf", bob) == 30 * UNIT
    assert world.collateral.logs(receipt, "Transfer(address,address,uint256)") == [
        {"sender": alice, "receiver": bob, "amount": 30 * UNIT}
    ]


def test_transfer_to_oneself_changes_nothing(world: World, alice: str) -> None:
    world.collateral.send("transfer", alice, 100 * UNIT, sender=alice)
    assert world.collateral.call("balanceOf", alice) == 100 * UNIT


def test_transfer_of_more_than_the_balance_is_refused(world: World, alice: str, bob: str) -> None:
    with reverts("InsufficientBalance"):
        world.collateral.send("transfer", bob, 100 * UNIT + 1, sender=alice)


def test_transfer_to_the_zero_address_is_refused(world: World, alice: str) -> None:
    with reverts("ZeroAddress"):
        world.collateral.send("transfer", ZERO, 1, sender=alice)


def test_transfer_from_uses_up_an_allowance(world: World, alice: str, bob: str) -> None:
    receipt = world.collateral.send("approve", bob, 10, sender=alice)
    assert world.collateral.logs(receipt, "Approval(address,address,uint256)") == [
        {"owner": alice, "spender": bob, "amount": 10}
    ]
    world.collateral.send("transferFrom", alice, bob, 4, sender=bob)
    assert world.collateral.call("allowance", alice, bob) == 6
    assert world.collateral.call("balanceOf", bob) == 4


def test_transfer_from_never_shrinks_the_largest_allowance(
    world: World, alice: str, bob: str
) -> None:
    world.collateral.send("approve", bob, ALLOWANCE_MAX, sender=alice)
    world.collateral.send("transferFrom", alice, bob, 4, sender=bob)
    assert world.collateral.call("allowance", alice, bob) == ALLOWANCE_MAX


def test_transfer_from_beyond_the_allowance_is_refused(world: World, alice: str, bob: str) -> None:
    world.collateral.send("approve", bob, 3, sender=alice)
    with reverts("InsufficientAllowance"):
        world.collateral.send("transferFrom", alice, bob, 4, sender=bob)
