"""Orders, their signing profiles, and their hashes by eth-account.

The encoder of typed data shares no code with the contracts or the package.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from eth_account import Account
from eth_account.messages import SignableMessage, encode_typed_data
from tests.contracts.evm import Actor

from foretell.domain.values.hexadecimal import keccak256

CHAIN_ID: Final = 80002
ZERO: Final = "0x" + "00" * 20
ZERO_WORD: Final = bytes(32)
UNIT: Final = 10**6
BUY: Final = 0
SELL: Final = 1
EOA: Final = 0
PROXY: Final = 1
SAFE: Final = 2
ERC1271: Final = 3
OTHER_SALT: Final = 2

V1_FIELDS: Final = (
    ("salt", "uint256"),
    ("maker", "address"),
    ("signer", "address"),
    ("taker", "address"),
    ("tokenId", "uint256"),
    ("makerAmount", "uint256"),
    ("takerAmount", "uint256"),
    ("expiration", "uint256"),
    ("nonce", "uint256"),
    ("feeRateBps", "uint256"),
    ("side", "uint8"),
    ("signatureType", "uint8"),
)
V2_FIELDS: Final = (
    ("salt", "uint256"),
    ("maker", "address"),
    ("signer", "address"),
    ("tokenId", "uint256"),
    ("makerAmount", "uint256"),
    ("takerAmount", "uint256"),
    ("side", "uint8"),
    ("signatureType", "uint8"),
    ("timestamp", "uint256"),
    ("metadata", "bytes32"),
    ("builder", "bytes32"),
)


@dataclass(frozen=True, slots=True)
class Profile:
    """A signing profile of the exchange; no address means the exchange itself."""

    name: str
    version: str
    verifying_contract: str
    struct_version: int

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        return V1_FIELDS if self.struct_version == 1 else V2_FIELDS


PROFILES: Final = (
    Profile("CTF Exchange", "1", ZERO, 1),
    Profile("CTF Exchange", "2", ZERO, 2),
    Profile("Polymarket CTF Exchange", "1", "0xdfe02eb6733538f8ea35d585af8de5958ad99e40", 1),
    Profile("Polymarket CTF Exchange", "2", "0xe111180000d2663c0091e4f400237545b87b996b", 2),
)
OWN_V1: Final = 0
OWN_V2: Final = 1
FOREIGN_V1: Final = 2
FOREIGN_V2: Final = 3


@dataclass(frozen=True, slots=True)
class Order:
    """An order as the exchange receives it."""

    maker: str
    signer: str
    token_id: int
    maker_amount: int
    taker_amount: int
    side: int
    salt: int = 1
    taker: str = ZERO
    expiration: int = 0
    nonce: int = 0
    fee_rate_bps: int = 0
    timestamp: int = 0
    metadata: bytes = ZERO_WORD
    builder: bytes = ZERO_WORD
    signature_type: int = EOA
    profile: int = OWN_V1
    signature: bytes = b""

    @property
    def fields(self) -> tuple[Any, ...]:
        return (
            self.salt,
            self.maker,
            self.signer,
            self.taker,
            self.token_id,
            self.maker_amount,
            self.taker_amount,
            self.expiration,
            self.nonce,
            self.fee_rate_bps,
            self.timestamp,
            self.metadata,
            self.builder,
            self.side,
            self.signature_type,
            self.profile,
            self.signature,
        )

    @property
    def message(self) -> dict[str, Any]:
        return {
            "salt": self.salt,
            "maker": self.maker,
            "signer": self.signer,
            "taker": self.taker,
            "tokenId": self.token_id,
            "makerAmount": self.maker_amount,
            "takerAmount": self.taker_amount,
            "expiration": self.expiration,
            "nonce": self.nonce,
            "feeRateBps": self.fee_rate_bps,
            "side": self.side,
            "signatureType": self.signature_type,
            "timestamp": self.timestamp,
            "metadata": self.metadata,
            "builder": self.builder,
        }


def typed_order(order: Order, profile: Profile, exchange: str) -> SignableMessage:
    """Return the order, encoded by eth-account."""
    own = profile.verifying_contract == ZERO
    return encode_typed_data(
        domain_data={
            "name": profile.name,
            "version": profile.version,
            "chainId": CHAIN_ID,
            "verifyingContract": exchange if own else profile.verifying_contract,
        },
        message_types={"Order": [{"name": n, "type": t} for n, t in profile.fields]},
        message_data={name: order.message[name] for name, _ in profile.fields},
    )


def digest(message: SignableMessage) -> bytes:
    """Return the signed hash of an encoded message."""
    return keccak256(b"\x19" + message.version + message.header + message.body)


def order_hash(order: Order, exchange: str) -> bytes:
    """Return the order's hash under its profile."""
    return digest(typed_order(order, PROFILES[order.profile], exchange))


def signed(order: Order, actor: Actor, exchange: str) -> Order:
    """Return the order with the actor's signature under the order's profile."""
    message = typed_order(order, PROFILES[order.profile], exchange)
    signature = Account.sign_message(message, actor.key).signature
    return replace(order, signature=bytes(signature))
