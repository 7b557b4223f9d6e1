"""A contract wallet at one block: its code, the code that it delegates to, and its owners.

A proxy delegates to an implementation, which it names in its code (ERC-1167), in a slot (ERC-1967, a Safe's
slot 0), or by a beacon. What changes a wallet's answer is logged: by the wallet, by its beacon, or by its
implementation. That holds for code that is known; other code may change without a log.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    Address,
    Bytes32,
    keccak256,
    word_of,
)

IMPLEMENTATION_SLOT: Final = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
BEACON_SLOT: Final = "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50"
SAFE_SINGLETON_SLOT: Final = "0x" + "0" * 64
"""The slots that name what a proxy runs (ERC-1967), and the first one, where a Safe has it."""

_CLONE_HEAD: Final = bytes.fromhex("363d3d373d3d3d363d73")
_CLONE_TAIL: Final = bytes.fromhex("5af43d82803e903d91602b57fd5bf3")
_CLONE_ADDRESS: Final = slice(len(_CLONE_HEAD), len(_CLONE_HEAD) + 20)

WORD_BYTES: Final = 32
_PADDING: Final = 12

_CHANGES: Final = (
    "SafeSetup(address,address[],uint256,address,address)",
    "AddedOwner(address)",
    "RemovedOwner(address)",
    "ChangedThreshold(uint256)",
    "ChangedMasterCopy(address)",
    "Upgraded(address)",
    "BeaconUpgraded(address)",
    "AdminChanged(address,address)",
    "OwnershipTransferred(address,address)",
)
CHANGE_TOPICS: Final = tuple(sorted(word_of(keccak256(each.encode())) for each in _CHANGES))
"""The first topics of logs after which a wallet may answer otherwise."""


class WalletKey(NamedTuple):
    """All that decides which signatures known code accepts: equal keys, equal answers."""

    code_hash: Bytes32
    implementation_hash: Bytes32 | None
    owners: tuple[Address, ...]
    threshold: int

    def digest(self) -> bytes:
        """Return 32 bytes for the key, however many owners there are."""
        parts = (self.code_hash, str(self.implementation_hash), str(self.threshold), *self.owners)
        return keccak256("\n".join(parts).encode())


class BlockMark(NamedTuple):
    """A block, by its number and its hash."""

    block_number: int
    block_hash: Bytes32


class WalletState(NamedTuple):
    """A wallet at a block. Without code it is not deployed, and nobody owns it yet.

    `shows_changes` when it runs known code, which changes its answer only with a log of one of `watched`.
    """

    block: BlockMark
    has_code: bool
    key: WalletKey
    watched: tuple[Address, ...]
    shows_changes: bool

    def is_owned_by(self, owner: Address) -> bool:
        """Return whether this owner's signature alone is enough for the wallet."""
        return self.key.threshold == 1 and owner in self.key.owners


class WalletChanges(NamedTuple):
    """The contracts that logged a change up to a block; None when it is not known which did."""

    upto: BlockMark
    changed: frozenset[Address] | None


def clone_target(code: bytes) -> Address | None:
    """Return what a minimal proxy (ERC-1167) delegates to, None for other code."""
    if not code.startswith(_CLONE_HEAD) or not code[_CLONE_ADDRESS.stop :].startswith(_CLONE_TAIL):
        return None
    return Address("0x" + code[_CLONE_ADDRESS].hex())


def address_in(word: bytes) -> Address | None:
    """Return the address in a word of storage, None if it is zero or no address."""
    if len(word) != WORD_BYTES or any(word[:_PADDING]):
        return None
    address = Address("0x" + word[_PADDING:].hex())
    return None if address == ZERO_ADDRESS else address


def watched_of(wallet: Address, others: Sequence[Address | None]) -> tuple[Address, ...]:
    """Return a wallet and the contracts that it depends on, each once."""
    return tuple(dict.fromkeys((wallet, *(each for each in others if each is not None))))
