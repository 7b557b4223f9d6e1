import pytest
from tests.contracts.evm import reverts
from tests.contracts.market import OTHER_QUESTION, World

REGISTERED = "TokenRegistered(uint256,uint256,bytes32)"


@pytest.fixture
def condition(world: World) -> bytes:
    """A condition that is prepared but not registered."""
    world.ctf.send("prepareCondition", world.oracle, OTHER_QUESTION, 2, sender=world.oracle)
    return bytes.fromhex(world.condition_of(OTHER_QUESTION)[2:])


def test_register_token_registers_both_tokens_and_logs_each(world: World, condition: bytes) -> None:
    yes, no = world.tokens_of(OTHER_QUESTION)
    receipt = world.exchange.send("registerToken", yes, no, condition, sender=world.registrar)
    assert world.exchange.logs(receipt, REGISTERED) == [
        {"token0": yes, "token1": no, "conditionId": condition},
        {"token0": no, "token1": yes, "conditionId": condition},
    ]
    assert world.exchange.call("getComplement", yes) == no
    assert world.exchange.call("getComplement", no) == yes
    assert world.exchange.call("getConditionId", yes) == condition
    assert world.exchange.call("getConditionId", no) == condition
    assert world.exchange.call("registry", yes) == (no, condition)


def test_register_token_has_the_known_selector(world: World) -> None:
    assert world.exchange.calldata("registerToken", 1, 2, bytes(32))[:4].hex() == "68c7450f"


def test_register_token_is_refused_a_second_time(world: World, condition: bytes) -> None:
    tokens = world.tokens_of(OTHER_QUESTION)
    world.exchange.send("registerToken", *tokens, condition, sender=world.registrar)
    with reverts("AlreadyRegistered"):
        world.exchange.send("registerToken", *tokens, condition, sender=world.registrar)


@pytest.mark.parametrize("role", ["admin", "operator", "oracle"])
def test_register_token_is_for_registrars_alone(world: World, condition: bytes, role: str) -> None:
    tokens = world.tokens_of(OTHER_QUESTION)
    with reverts("NotRegistrar"):
        world.exchange.send("registerToken", *tokens, condition, sender=getattr(world, role))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("no", "yes"),
        ("yes", "yes"),
        ("no", "no"),
        ("yes", "no elsewhere"),
        ("yes elsewhere", "no"),
        ("yes", "nothing"),
        ("nothing", "no"),
    ],
)
def test_register_token_derives_the_ids_itself(
    world: World, condition: bytes, first: str, second: str
) -> None:
    """Swapped outcomes, one outcome twice, and an outcome of another market."""
    yes, no = world.tokens_of(OTHER_QUESTION)
    elsewhere = world.tokens_of(b"\1" * 32)
    tokens = {
        "yes": yes,
        "no": no,
        "yes elsewhere": elsewhere[0],
        "no elsewhere": elsewhere[1],
        "nothing": 0,
    }
    with reverts("InvalidTokenId"):
        world.exchange.send(
            "registerToken", tokens[first], tokens[second], condition, sender=world.registrar
        )


def test_register_token_requires_a_prepared_condition(world: World) -> None:
    tokens = world.tokens_of(OTHER_QUESTION)
    unprepared = bytes.fromhex(world.condition_of(OTHER_QUESTION)[2:])
    with reverts("InvalidCondition"):
        world.exchange.send("registerToken", *tokens, unprepared, sender=world.registrar)


def test_register_token_requires_two_outcomes(world: World) -> None:
    world.ctf.send("prepareCondition", world.oracle, OTHER_QUESTION, 3, sender=world.oracle)
    three = world.ctf.call("getConditionId", world.oracle, OTHER_QUESTION, 3)
    with reverts("InvalidCondition"):
        world.exchange.send("registerToken", 1, 2, three, sender=world.registrar)


@pytest.mark.parametrize("name", ["getComplement", "getConditionId"])
def test_an_unregistered_token_has_no_complement(world: World, name: str) -> None:
    with reverts("InvalidTokenId"):
        world.exchange.call(name, world.tokens_of(OTHER_QUESTION)[0])
