import pytest
from tests.contracts.evm import Contract, own_artifact, reverts
from tests.contracts.market import ALLOWANCE_MAX, World
from tests.contracts.signing import UNIT, ZERO

TRANSFER = "Transfer(address,address,uint256)"


@pytest.fixture
def owner(world: World) -> str:
    return world.evm.actor("owner of the wrapping").address


@pytest.fixture
def wrapped(world: World, owner: str) -> Contract:
    """Wrapped collateral with an owner that has approved its collateral."""
    wrapped = world.evm.deploy(
        own_artifact("WrappedCollateral"), world.collateral.address, sender=owner
    )
    world.collateral.send("mint", owner, 100 * UNIT, sender=world.minter)
    world.collateral.send("approve", wrapped.address, ALLOWANCE_MAX, sender=owner)
    return wrapped


@pytest.fixture
def holder(world: World, wrapped: Contract, owner: str) -> str:
    holder = world.evm.actor("holder").address
    wrapped.send("wrap", holder, 10 * UNIT, sender=owner)
    return holder


def test_it_is_owned_by_its_deployer_and_has_the_decimals_of_its_collateral(
    world: World, wrapped: Contract, owner: str
) -> None:
    assert (wrapped.call("owner"), wrapped.call("underlying")) == (owner, world.collateral.address)
    assert (wrapped.call("decimals"), wrapped.call("symbol")) == (6, "WCOL")
    assert wrapped.call("name") == "Wrapped Collateral"


def test_wrap_takes_the_owners_collateral_and_mints_as_much(
    world: World, wrapped: Contract, owner: str
) -> None:
    holder = world.evm.actor("holder").address
    receipt = wrapped.send("wrap", holder, UNIT, sender=owner)
    assert wrapped.call("balanceOf", holder) == wrapped.call("totalSupply") == UNIT
    assert world.collateral.call("balanceOf", wrapped.address) == UNIT
    assert wrapped.logs(receipt, TRANSFER) == [{"sender": ZERO, "receiver": holder, "amount": UNIT}]


def test_unwrap_returns_the_collateral_to_any_holder(
    world: World, wrapped: Contract, holder: str
) -> None:
    receiver = world.evm.actor("receiver").address
    receipt = wrapped.send("unwrap", receiver, 4 * UNIT, sender=holder)
    assert wrapped.call("balanceOf", holder) == wrapped.call("totalSupply") == 6 * UNIT
    assert world.collateral.call("balanceOf", receiver) == 4 * UNIT
    logged = {"sender": holder, "receiver": ZERO, "amount": 4 * UNIT}
    assert wrapped.logs(receipt, TRANSFER) == [logged]


def test_unwrap_refuses_more_than_the_balance(wrapped: Contract, holder: str) -> None:
    with reverts("InsufficientBalance"):
        wrapped.send("unwrap", holder, 10 * UNIT + 1, sender=holder)


def test_mint_creates_tokens_without_collateral(
    world: World, wrapped: Contract, owner: str
) -> None:
    wrapped.send("mint", UNIT, sender=owner)
    assert wrapped.call("balanceOf", owner) == UNIT
    assert world.collateral.call("balanceOf", wrapped.address) == 0


def test_release_pays_collateral_and_takes_no_tokens(
    world: World, wrapped: Contract, owner: str, holder: str
) -> None:
    wrapped.send("release", holder, UNIT, sender=owner)
    assert world.collateral.call("balanceOf", holder) == UNIT
    assert wrapped.call("totalSupply") == 10 * UNIT


@pytest.mark.parametrize(
    ("name", "takes_receiver"), [("wrap", True), ("mint", False), ("release", True)]
)
def test_mint_wrap_and_release_are_for_the_owner_alone(
    wrapped: Contract,
    holder: str,
    name: str,
    takes_receiver: bool,  # noqa: FBT001 - the column of a table
) -> None:
    receiver = (holder,) * takes_receiver
    with reverts("NotOwner"):
        wrapped.send(name, *receiver, 1, sender=holder)


def test_transfer_moves_the_callers_tokens(world: World, wrapped: Contract, holder: str) -> None:
    receiver = world.evm.actor("receiver").address
    receipt = wrapped.send("transfer", receiver, UNIT, sender=holder)
    assert wrapped.call("balanceOf", receiver) == UNIT
    logged = {"sender": holder, "receiver": receiver, "amount": UNIT}
    assert wrapped.logs(receipt, TRANSFER) == [logged]


@pytest.mark.parametrize(
    ("receiver", "units", "error"),
    [(ZERO, 1, "ZeroAddress"), ("0x" + "11" * 20, 10 * UNIT + 1, "InsufficientBalance")],
)
def test_transfer_refuses_the_zero_address_and_too_much(
    wrapped: Contract, holder: str, receiver: str, units: int, error: str
) -> None:
    with reverts(error):
        wrapped.send("transfer", receiver, units, sender=holder)


@pytest.mark.parametrize(
    ("allowed", "left"), [(3 * UNIT, 2 * UNIT), (ALLOWANCE_MAX, ALLOWANCE_MAX)]
)
def test_transfer_from_uses_up_an_allowance_unless_it_is_the_largest(
    world: World, wrapped: Contract, holder: str, allowed: int, left: int
) -> None:
    spender = world.evm.actor("spender").address
    receipt = wrapped.send("approve", spender, allowed, sender=holder)
    logged = {"owner": holder, "spender": spender, "amount": allowed}
    assert wrapped.logs(receipt, "Approval(address,address,uint256)") == [logged]
    wrapped.send("transferFrom", holder, spender, UNIT, sender=spender)
    assert wrapped.call("balanceOf", spender) == UNIT
    assert wrapped.call("allowance", holder, spender) == left


def test_transfer_from_refuses_more_than_was_allowed(
    world: World, wrapped: Contract, holder: str
) -> None:
    spender = world.evm.actor("spender").address
    wrapped.send("approve", spender, UNIT, sender=holder)
    with reverts("InsufficientAllowance"):
        wrapped.send("transferFrom", holder, spender, UNIT + 1, sender=spender)


def test_a_collateral_that_returns_false_is_a_failure(world: World, owner: str) -> None:
    """Code that answers 6 to `decimals()`, and zero to every other call."""
    refusing = world.evm.actor("refusing collateral").address
    code = "5f3560e01c63313ce567146015575f5f5260205ff35b60065f5260205ff3"
    world.evm.rpc("anvil_setCode", refusing, "0x" + code)
    wrapped = world.evm.deploy(own_artifact("WrappedCollateral"), refusing, sender=owner)
    with reverts("TransferFailed"):
        wrapped.send("wrap", owner, 1, sender=owner)
    with reverts("TransferFailed"):
        wrapped.send("release", owner, 1, sender=owner)
