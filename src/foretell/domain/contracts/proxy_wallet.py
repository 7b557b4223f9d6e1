"""A user's proxy wallet: its address, and the calls that its owner signs for the relay hub.

The wallet is a minimal proxy (ERC-1167) that its factory makes with the owner's first call. The hub
checks the owner's signature and calls the factory, which passes the calls on to the wallet.
"""

from typing import Final, NamedTuple

from foretell.domain.contracts.safe import InnerCall
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.evm.abi import SELECTOR_BYTES, contract_function
from foretell.domain.evm.raw_transaction import create2_address
from foretell.domain.values.eip712 import personal_digest, uint_word
from foretell.domain.values.hexadecimal import Address, address_bytes, keccak256

CLONE_CONSTRUCTOR: Final = contract_function("cloneConstructor(bytes)")
PROXY_CALLS: Final = contract_function("proxy((uint8,address,uint256,bytes)[])")
RELAY_CALL: Final = contract_function(
    "relayCall(address,address,bytes,uint256,uint256,uint256,uint256,bytes,bytes)"
)

CALL_TYPE: Final = 1
CALLS_PER_PROXY_MAX: Final = 16
PROXY_CALL_BYTES_MAX: Final = 4_096
PROXY_CALLDATA_BYTES_MAX: Final = 16_384

_HEAD: Final = bytes.fromhex("3d3d606380380380913d393d73")
_MIDDLE: Final = bytes.fromhex("5af4602a57600080fd5b602d8060366000396000f3363d3d373d3d3d363d73")
_TAIL: Final = bytes.fromhex("5af43d82803e903d91602b57fd5bf3")


def proxy_init_code_hash(factory: Address, implementation: Address) -> bytes:
    """Return the hash of the creation code of a factory's wallets."""
    parts = (_HEAD, address_bytes(factory), _MIDDLE, address_bytes(implementation), _TAIL)
    return keccak256(b"".join(parts) + CLONE_CONSTRUCTOR.encode(b""))


def proxy_wallet_address(owner: Address, factory: Address, implementation: Address) -> Address:
    """Return the address of the owner's wallet of a factory, deployed or not."""
    salt = keccak256(address_bytes(owner))
    return create2_address(factory, salt, proxy_init_code_hash(factory, implementation))


def encode_proxy_calls(calls: tuple[InnerCall, ...]) -> bytes:
    """Return the calldata by which an owner makes calls from its wallet."""
    return PROXY_CALLS.encode(
        [(CALL_TYPE, call.to, call.value_wei, call.calldata) for call in calls]
    )


def decode_proxy_calls(calldata: bytes) -> tuple[InnerCall, ...]:
    """Return the calls in the factory's calldata, or refuse what a wallet would not make."""
    if calldata[:SELECTOR_BYTES] != PROXY_CALLS.selector:
        raise MalformedCalldata("a call of proxy((uint8,address,uint256,bytes)[])")
    (calls,) = PROXY_CALLS.decode(calldata)
    if not 0 < len(calls) <= CALLS_PER_PROXY_MAX:
        raise MalformedCalldata(f"1 to {CALLS_PER_PROXY_MAX} calls of a proxy wallet")
    if any(kind != CALL_TYPE for kind, *_ in calls):
        raise MalformedCalldata(f"calls of a proxy wallet with the typeCode {CALL_TYPE}")
    if any(len(call_bytes) > PROXY_CALL_BYTES_MAX for *_, call_bytes in calls):
        raise MalformedCalldata(f"at most {PROXY_CALL_BYTES_MAX} bytes in a proxy wallet's call")
    return tuple(InnerCall(Address(to), call_bytes, value) for _, to, value, call_bytes in calls)


class RelayedCall(NamedTuple):
    """A call of the factory that an owner signed for one relay; the nonce is the owner's at the hub."""

    owner: Address
    factory: Address
    calldata: bytes
    gas_limit: int
    nonce: int
    hub: Address
    relay: Address

    def digest(self) -> bytes:
        """Return the 32 bytes that the owner's key signs: those of the personal message (EIP-191)."""
        return personal_digest(self.message())

    def message(self) -> bytes:
        """Return the 32 bytes that the owner signs as a personal message."""
        no_fee, no_gas_price = uint_word(0), uint_word(0)
        signed = b"".join(
            (
                b"rlx:",
                address_bytes(self.owner),
                address_bytes(self.factory),
                self.calldata,
                no_fee,
                no_gas_price,
                uint_word(self.gas_limit),
                uint_word(self.nonce),
                address_bytes(self.hub),
                address_bytes(self.relay),
            )
        )
        return keccak256(signed)

    def encode(self, signature: bytes) -> bytes:
        """Return the calldata by which the relay makes it at the hub."""
        return RELAY_CALL.encode(
            self.owner,
            self.factory,
            self.calldata,
            0,
            0,
            self.gas_limit,
            self.nonce,
            signature,
            b"",
        )
