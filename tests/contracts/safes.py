"""Safes of the factory, and the signatures of their owners."""

from dataclasses import dataclass

from eth_account import Account
from eth_account.messages import encode_typed_data
from tests.contracts.evm import Actor, Contract, safe_artifact
from tests.contracts.market import FACTORY_NAME, World
from tests.contracts.signing import CHAIN_ID, ZERO

Signature = tuple[int, bytes, bytes]


@dataclass(frozen=True)
class Consent:
    """The typed data that an owner signs: three payment fields, in the domain of a factory."""

    factory: str
    name: str = FACTORY_NAME
    payment_token: str = ZERO
    payment: int = 0
    payment_receiver: str = ZERO

    def signed(self, key: bytes) -> Signature:
        message = encode_typed_data(
            domain_data={
                "name": self.name,
                "chainId": CHAIN_ID,
                "verifyingContract": self.factory,
            },
            message_types={
                "CreateProxy": [
                    {"name": "paymentToken", "type": "address"},
                    {"name": "payment", "type": "uint256"},
                    {"name": "paymentReceiver", "type": "address"},
                ]
            },
            message_data={
                "paymentToken": self.payment_token,
                "payment": self.payment,
                "paymentReceiver": self.payment_receiver,
            },
        )
        signature = Account.sign_message(message, key)
        return signature.v, word(signature.r), word(signature.s)


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def create(world: World, factory: Contract, signature: Signature) -> None:
    relayer = world.evm.actor("relayer").address
    factory.send("createProxy", ZERO, 0, ZERO, signature, sender=relayer)


def a_safe(world: World, owner: Actor) -> Contract:
    """Return a new Safe of this owner."""
    create(world, world.safe_factory, Consent(world.safe_factory.address).signed(owner.key))
    address = world.safe_factory.call("computeProxyAddress", owner.address)
    return world.evm.at(address, safe_artifact("GnosisSafe.sol/GnosisSafe").abi)
