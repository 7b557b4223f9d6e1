import pytest
from eth_account.messages import encode_typed_data
from tests.contracts.evm import Actor, own_artifact, own_artifact_fields, reverts, safe_artifact
from tests.contracts.market import FACTORY_NAME, World
from tests.contracts.safes import Consent, create, word
from tests.contracts.signing import CHAIN_ID, ZERO

from foretell.domain.values.hexadecimal import keccak256

CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

# The addresses that clients contain, and an owner's Safe that they derive.
CANONICAL_FACTORY = "0xaacfeea03eb1561c4e67d661e40682bd20e3541b"
CANONICAL_SINGLETON = "0xe51abdf814f8854941b9fe8e3a4f65cab4e7a4a8"
CANONICAL_OWNER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
CANONICAL_OWNER_KEY = bytes.fromhex(
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
)
CANONICAL_SAFE = "0xd93b25cb943d14d0d34fbaf01fc93a0f8b5f6e47"


@pytest.fixture
def owner(world: World) -> Actor:
    return world.evm.actor("owner of a safe")


def test_create_proxy_creates_a_safe_of_the_signer_alone(world: World, owner: Actor) -> None:
    factory = world.safe_factory
    signature = Consent(factory.address).signed(owner.key)
    relayer = world.evm.actor("relayer").address
    receipt = factory.send("createProxy", ZERO, 0, ZERO, signature, sender=relayer)
    proxy = factory.call("computeProxyAddress", owner.address)
    assert factory.logs(receipt, "ProxyCreation(address,address)") == [
        {"proxy": proxy, "owner": owner.address}
    ]
    safe = world.evm.at(proxy, safe_artifact("GnosisSafe.sol/GnosisSafe").abi)
    assert safe.call("getOwners") == (owner.address,)
    assert safe.call("getThreshold") == 1
    assert safe.call("nonce") == 0
    assert safe.call("VERSION") == "1.3.0"


def test_create_proxy_creates_another_safe_for_a_second_owner(world: World, owner: Actor) -> None:
    factory = world.safe_factory
    other = world.evm.actor("another owner")
    create(world, factory, Consent(factory.address).signed(owner.key))
    create(world, factory, Consent(factory.address).signed(other.key))
    addresses = {factory.call("computeProxyAddress", who.address) for who in (owner, other)}
    assert len(addresses) == 2


def test_create_proxy_is_refused_a_second_time(world: World, owner: Actor) -> None:
    signature = Consent(world.safe_factory.address).signed(owner.key)
    create(world, world.safe_factory, signature)
    with reverts("ProxyExists"):
        create(world, world.safe_factory, signature)


@pytest.mark.parametrize(
    ("token", "payment", "receiver"),
    [("0x" + "11" * 20, 0, ZERO), (ZERO, 1, ZERO), (ZERO, 0, "0x" + "11" * 20)],
)
def test_create_proxy_makes_no_payment(
    world: World, owner: Actor, token: str, payment: int, receiver: str
) -> None:
    consent = Consent(
        world.safe_factory.address,
        payment_token=token,
        payment=payment,
        payment_receiver=receiver,
    )
    signature = consent.signed(owner.key)
    with reverts("PaymentNotSupported"):
        world.safe_factory.send(
            "createProxy", token, payment, receiver, signature, sender=owner.address
        )


def test_create_proxy_accepts_its_own_domain_alone(world: World, owner: Actor) -> None:
    factory = world.safe_factory
    create(world, factory, Consent(factory.address, name="Another Factory").signed(owner.key))
    proxy = factory.call("computeProxyAddress", owner.address)
    assert world.evm.rpc("eth_getCode", proxy, "latest") == "0x"


@pytest.mark.parametrize("v", [0, 1, 26, 29, 31])
def test_create_proxy_refuses_other_values_of_v(world: World, owner: Actor, v: int) -> None:
    _, r, s = Consent(world.safe_factory.address).signed(owner.key)
    with reverts("InvalidSignature"):
        create(world, world.safe_factory, (v, r, s))


def test_create_proxy_refuses_high_s(world: World, owner: Actor) -> None:
    v, r, s = Consent(world.safe_factory.address).signed(owner.key)
    high = word(CURVE_ORDER - int.from_bytes(s, "big"))
    with reverts("InvalidSignature"):
        create(world, world.safe_factory, (55 - v, r, high))


def test_create_proxy_refuses_a_signature_that_recovers_to_the_zero_address(world: World) -> None:
    with reverts("InvalidSignature"):
        create(world, world.safe_factory, (27, bytes(32), bytes(32)))


def test_domain_separator_is_of_the_factory(world: World) -> None:
    message = encode_typed_data(
        domain_data={
            "name": FACTORY_NAME,
            "chainId": CHAIN_ID,
            "verifyingContract": world.safe_factory.address,
        },
        message_types={"CreateProxy": [{"name": "payment", "type": "uint256"}]},
        message_data={"payment": 0},
    )
    assert world.safe_factory.call("domainSeparator") == message.header


def test_proxy_creation_code_has_the_singleton_at_its_end(world: World) -> None:
    factory = world.safe_factory
    code = factory.call("proxyCreationCode")
    stock = bytes.fromhex(own_artifact_fields("SafeProxyCreationCode")["bytecode"][2:])
    assert code == stock + bytes.fromhex(factory.call("masterCopy")[2:].rjust(64, "0"))
    assert factory.call("initCodeHash") == keccak256(code)


def test_at_the_clients_addresses_it_creates_the_safe_that_clients_derive(world: World) -> None:
    world.evm.install(CANONICAL_SINGLETON, safe_artifact("GnosisSafe.sol/GnosisSafe"))
    factory = world.evm.install(
        CANONICAL_FACTORY,
        own_artifact("SafeFactory"),
        CANONICAL_SINGLETON,
        world.safe_factory.call("fallbackHandler"),
        FACTORY_NAME,
        bytes.fromhex(own_artifact_fields("SafeProxyCreationCode")["bytecode"][2:]),
    )
    assert factory.call("computeProxyAddress", CANONICAL_OWNER) == CANONICAL_SAFE
    create(world, factory, Consent(CANONICAL_FACTORY).signed(CANONICAL_OWNER_KEY))
    safe = world.evm.at(CANONICAL_SAFE, safe_artifact("GnosisSafe.sol/GnosisSafe").abi)
    assert safe.call("getOwners") == (CANONICAL_OWNER,)
