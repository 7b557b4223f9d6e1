"""A user's deposit wallet: its address, and the batches of calls that its owner signs.

The wallet is a beacon proxy. Its code ends with its factory and its owner, so that the address, which
follows from the code, is another one for each owner.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foretell.domain.contracts.safe import InnerCall
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.raw_transaction import create2_address
from foretell.domain.exchange.signing.wallet_signatures import (
    WALLET_DOMAIN_NAME,
    WALLET_DOMAIN_VERSION,
)
from foretell.domain.values.eip712 import (
    Eip712Domain,
    address_word,
    text_word,
    typed_digest,
    uint_word,
)
from foretell.domain.values.hexadecimal import Address, address_bytes, keccak256

DEPLOY_WALLET: Final = contract_function("deploy(address)", "(address)")
EXECUTE_BATCH: Final = contract_function("execute((address,uint256,bytes)[],uint256,bytes)")

CALLS_PER_BATCH_MAX: Final = 16
CALL_BYTES_MAX: Final = 4_096

CALL_TYPE: Final = "Call(address target,uint256 value,bytes data)"
CALL_TYPE_HASH: Final = text_word(CALL_TYPE)
BATCH_TYPE_HASH: Final = text_word(
    "Batch(address wallet,uint256 nonce,uint256 deadline,Call[] calls)" + CALL_TYPE
)

_HEAD: Final = bytes.fromhex("6100923d8160233d3973")
_TAIL: Final = bytes.fromhex(
    "60195155f3363d3d373d3d363d602036600436635c60da"
    "1b60e01b36527fa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6c"
    "b3582b35133d50545afa5036515af43d6000803e604d573d6000fd5b3d6000f3"
)


def deposit_wallet_address(owner: Address, factory: Address, beacon: Address) -> Address:
    """Return the address of the owner's wallet of a factory, deployed or not."""
    arguments = address_word(factory) + address_word(owner)
    init_code = _HEAD + address_bytes(beacon) + _TAIL + arguments
    return create2_address(factory, keccak256(arguments), keccak256(init_code))


class WalletBatch(NamedTuple):
    """Calls of a wallet, executed together once; the nonce is the wallet's own."""

    wallet: Address
    calls: tuple[InnerCall, ...]
    nonce: int
    deadline_s: int

    def digest(self, chain_id: int) -> bytes:
        """Return the 32 bytes that the owner signs."""
        domain = Eip712Domain(WALLET_DOMAIN_NAME, WALLET_DOMAIN_VERSION, chain_id, self.wallet)
        struct_hash = keccak256(
            b"".join(
                (
                    BATCH_TYPE_HASH,
                    address_word(self.wallet),
                    uint_word(self.nonce),
                    uint_word(self.deadline_s),
                    keccak256(b"".join(map(_call_hash, self.calls))),
                )
            )
        )
        return typed_digest(domain.separator(), struct_hash)

    def encode(self, signature: bytes) -> bytes:
        """Return the calldata by which any account can execute it."""
        return EXECUTE_BATCH.encode(_words(self.calls), self.deadline_s, signature)


def _words(calls: Sequence[InnerCall]) -> list[tuple[Address, int, bytes]]:
    return [(call.to, call.value_wei, call.calldata) for call in calls]


def _call_hash(call: InnerCall) -> bytes:
    return keccak256(
        CALL_TYPE_HASH
        + address_word(call.to)
        + uint_word(call.value_wei)
        + keccak256(call.calldata)
    )
