"""Reads of contract wallets at a stated block, and of the logs that show that they changed.

A wallet is code that we do not know. Every call of it has a bound on its gas and on the bytes of its answer.
"""

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import BlockHeader, bytes_of, header_of
from foretell.chain.views import (
    BlockTag,
    ViewCall,
    accepts_signature,
    at_block,
    bounded_views,
)
from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.contracts.wallet_state import (
    BEACON_SLOT,
    CHANGE_TOPICS,
    IMPLEMENTATION_SLOT,
    SAFE_SINGLETON_SLOT,
    BlockMark,
    WalletChanges,
    WalletKey,
    WalletState,
    address_in,
    clone_target,
    watched_of,
)
from foretell.domain.errors.chain import ChainUnavailable, RpcRefused
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address, Bytes32, keccak256, word_of

READ_ATTEMPTS_MAX: Final = 2
ADDRESSES_PER_QUERY_MAX: Final = 500
"""Above this many contracts the logs of all are asked for by their topics alone."""
LOGS_BYTES_MAX: Final = 4 * 1024 * 1024
BLOCKS_UNWATCHED_MAX: Final = 1_000

_NEWEST: Final = ("eth_getBlockByNumber", ["latest", False])
_OWN_CODE: Final = (ContractName.SAFE_SINGLETON, ContractName.DEPOSIT_WALLET)
_OWNERS: Final = contract_function("getOwners()", "(address[])")
_THRESHOLD: Final = contract_function("getThreshold()", "(uint256)")
_OWNER: Final = contract_function("owner()", "(address)")
_BEACON_IMPLEMENTATION: Final = contract_function("implementation()", "(address)")


class _LogOrigin(msgspec.Struct):
    address: str


class WalletStates:
    """The contract wallets of one deployment."""

    def __init__(self, rpc: Rpc, deployment: Deployment) -> None:
        self._rpc = rpc
        found = {name: deployment.contracts.get(name) for name in _OWN_CODE}
        self._own_hash_by_address = {
            each.address: each.code_hash for each in found.values() if each is not None
        }
        beacon = deployment.contracts.get(ContractName.DEPOSIT_WALLET_BEACON)
        code = deployment.contracts.get(ContractName.DEPOSIT_WALLET)
        self._fixed_beacons: dict[Address, Address] = (
            {} if beacon is None or code is None else {beacon.address: code.address}
        )

    async def read(self, wallet: Address) -> WalletState:
        """Return a wallet at the newest block; if that is replaced meanwhile, at the next one.

        Raises ChainUnavailable when the chain does not answer.
        """
        for _ in range(READ_ATTEMPTS_MAX - 1):
            with contextlib.suppress(RpcRefused):
                return await self._read_at(wallet, await self._head())
        try:
            return await self._read_at(wallet, await self._head())
        except RpcRefused as error:
            raise ChainUnavailable("eth_getCode", "the node does not have its block") from error

    async def _read_at(self, wallet: Address, head: BlockHeader) -> WalletState:
        at = at_block(head.block_hash)
        code, *words = await self._rpc.batch(
            [
                ("eth_getCode", [wallet, at]),
                ("eth_getStorageAt", [wallet, BEACON_SLOT, at]),
                ("eth_getStorageAt", [wallet, IMPLEMENTATION_SLOT, at]),
                ("eth_getStorageAt", [wallet, SAFE_SINGLETON_SLOT, at]),
            ]
        )
        return await self._state(
            wallet,
            head,
            bytes_of(code, "eth_getCode"),
            [address_in(bytes_of(each, "eth_getStorageAt")) for each in words],
        )

    async def _state(
        self,
        wallet: Address,
        head: BlockHeader,
        code: bytes,
        slots: Sequence[Address | None],
    ) -> WalletState:
        at = at_block(head.block_hash)
        beacon, stored, singleton = slots
        implementation = clone_target(code)
        implementation_hash, owners, threshold = None, tuple[Address, ...](), 0
        if code:
            if implementation is not None:
                beacon = None
            elif beacon is not None:
                implementation = await self._implementation_of(beacon, at)
            else:
                implementation = stored or singleton
            (owners, threshold), implementation_hash = await asyncio.gather(
                self._owners(wallet, at), self._code_hash(implementation, at)
            )
        is_own = implementation in self._own_hash_by_address and (
            beacon is None or beacon in self._fixed_beacons
        )
        key = WalletKey(word_of(keccak256(code)), implementation_hash, owners, threshold)
        return WalletState(
            _mark(head),
            bool(code),
            key,
            watched_of(wallet, (beacon, implementation)),
            is_own or not code,
        )

    async def accepts(
        self, state: WalletState, wallet: Address, digest: bytes, signature: bytes
    ) -> bool:
        """Return whether a wallet accepts a signature at the block of its state, within the exchange's gas.

        A wallet that is not there, reverts or answers more than a word does not accept it.
        """
        at = at_block(state.block.block_hash)
        return state.has_code and await accepts_signature(self._rpc, wallet, digest, signature, at)

    async def changes(self, since: BlockMark, watched: Collection[Address]) -> WalletChanges:
        """Return which contracts logged a change after a block.

        It is not known after a reorg of that block, when the block is long ago, and when the node does
        not give the logs within `LOGS_BYTES_MAX`.
        """
        newest, then = await self._rpc.batch(
            [
                _NEWEST,
                ("eth_getBlockByNumber", [hex(since.block_number), False]),
            ]
        )
        head = _present(header_of(newest))
        before = header_of(then)
        upto = _mark(head)
        if upto == since:
            return WalletChanges(upto, frozenset())
        is_linear = before is not None and before.block_hash == since.block_hash
        blocks = head.block_number - since.block_number
        if not is_linear or not 0 < blocks <= BLOCKS_UNWATCHED_MAX:
            return WalletChanges(upto, None)
        return WalletChanges(upto, await self._changed(since, upto, watched))

    async def _changed(
        self, since: BlockMark, upto: BlockMark, watched: Collection[Address]
    ) -> frozenset[Address] | None:
        if not watched:
            return frozenset()
        query: dict[str, Any] = {
            "fromBlock": hex(since.block_number + 1),
            "toBlock": hex(upto.block_number),
            "topics": [CHANGE_TOPICS],
        }
        if len(watched) <= ADDRESSES_PER_QUERY_MAX:
            query["address"] = sorted(watched)
        try:
            found = await self._rpc.send("eth_getLogs", query, answer_bytes_max=LOGS_BYTES_MAX)
            logs = msgspec.convert(found, list[_LogOrigin])
        except (RpcRefused, ChainUnavailable, msgspec.ValidationError):
            return None
        origins = {Address(each.address.lower()) for each in logs}
        return frozenset(each for each in origins if each in watched)

    async def _head(self) -> BlockHeader:
        (newest,) = await self._rpc.batch([_NEWEST])
        return _present(header_of(newest))

    async def _implementation_of(self, beacon: Address, at: BlockTag) -> Address | None:
        if beacon in self._fixed_beacons:
            return self._fixed_beacons[beacon]
        (found,) = await bounded_views(self._rpc, [ViewCall(beacon, _BEACON_IMPLEMENTATION)], at)
        return None if found is None else Address(found)

    async def _code_hash(self, implementation: Address | None, at: BlockTag) -> Bytes32 | None:
        if implementation is None:
            return None
        own = self._own_hash_by_address.get(implementation)
        if own is not None:
            return own
        code = await self._rpc.call("eth_getCode", implementation, at)
        return word_of(keccak256(bytes_of(code, "eth_getCode")))

    async def _owners(self, wallet: Address, at: BlockTag) -> tuple[tuple[Address, ...], int]:
        """Return the owners and how many must sign; a wallet that names one owner needs that one."""
        calls = [ViewCall(wallet, _OWNERS), ViewCall(wallet, _THRESHOLD)]
        owners, threshold = await bounded_views(self._rpc, calls, at)
        if owners is not None and threshold is not None:
            return tuple(sorted(map(Address, owners))), int(threshold)
        (owner,) = await bounded_views(self._rpc, [ViewCall(wallet, _OWNER)], at)
        return ((), 0) if owner is None else ((Address(owner),), 1)


def _present(header: BlockHeader | None) -> BlockHeader:
    if header is None:
        raise ChainUnavailable("eth_getBlockByNumber", "no newest block")
    return header


def _mark(header: BlockHeader) -> BlockMark:
    return BlockMark(header.block_number, header.block_hash)
