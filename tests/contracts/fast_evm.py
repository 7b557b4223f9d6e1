"""A chain in this process, for long sequences: no node, no blocks, no receipts with logs.

It is a real EVM, and about a hundred times as fast as a node. Its gas is not that of a transaction,
so it is not reported.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

import pyrevm
from tests.contracts.evm import Actor, Evm, Receipt, Reverted, an_actor
from typing_extensions import override

from foretell.domain.contracts.calldata import EXEC_TRANSACTION
from foretell.domain.contracts.deposit_wallet import WalletBatch
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import keccak256, parse_address

CHAIN_ID: Final = 80002
START_S: Final = 1_800_000_000
CALL_GAS_MAX: Final = 100_000_000
NO_GAS: Final = 0
ZERO_SENDER: Final = "0x" + "00" * 20
NONCE: Final = keccak256(b"nonce()")[:4]
DEADLINE_S: Final = 2**40


class FastEvm(Evm):
    """An EVM with the interface of a node."""

    def __init__(self) -> None:
        self.error_names = {}
        self.controller_by_wallet: dict[str, str] = {}
        self.owner_by_safe: dict[str, str] = {}
        self.owner_by_deposit_wallet: dict[str, Actor] = {}
        self._now_s = START_S
        self._evm = pyrevm.EVM(
            env=pyrevm.Env(
                cfg=pyrevm.CfgEnv(chain_id=CHAIN_ID),
                block=_block_at(START_S),
                tx=pyrevm.TxEnv(chain_id=CHAIN_ID),
            ),
            spec_id="CANCUN",
        )

    @override
    def __enter__(self) -> Self:
        return self

    @override
    def __exit__(self, *_: object) -> None:
        return None

    @override
    def actor(self, name: str) -> Actor:
        return an_actor(name)

    @override
    def fund(self, address: str) -> None:
        """Do nothing: gas is free here."""

    @override
    def now(self) -> int:
        return self._now_s

    def view(self, target: str, calldata: bytes) -> bytes:
        """Return the result of a call."""
        return self.act(ZERO_SENDER, target, calldata)

    def act(self, sender: str, target: str, calldata: bytes) -> bytes:
        """Return the result of a transaction's call.

        The controller of a wallet sends it through the wallet, the one owner of a Safe through the
        Safe, and the owner of a deposit wallet signs it.
        """
        if (controller := self.controller_by_wallet.get(sender)) is not None:
            sender, target, calldata = controller, sender, bytes.fromhex(target[2:]) + calldata
        elif (owner := self.owner_by_safe.get(sender)) is not None:
            sender, target, calldata = owner, sender, safe_call(owner, target, calldata)
        elif (signer := self.owner_by_deposit_wallet.get(sender)) is not None:
            batch = self._batch_call(sender, signer, target, calldata)
            sender, target, calldata = signer.address, sender, batch
        try:
            return bytes(
                self._evm.message_call(sender, target, calldata=calldata, gas=CALL_GAS_MAX)
            )
        except RuntimeError as error:
            raise self._reverted(_revert_data(str(error))) from None
        finally:
            self._evm.reset_transient_storage()

    def _batch_call(self, wallet: str, owner: Actor, target: str, calldata: bytes) -> bytes:
        """Return the calldata by which anybody has a deposit wallet make a call that its owner signed."""
        nonce = int.from_bytes(self.view(wallet, NONCE), "big")
        call = InnerCall(parse_address(target), calldata)
        batch = WalletBatch(parse_address(wallet), (call,), nonce, DEADLINE_S)
        return batch.encode(sign_digest(batch.digest(CHAIN_ID), owner.key))

    @override
    def attempt(self, sender: str, to: str | None, data: bytes) -> Receipt:
        if to is None:
            return Receipt(True, NO_GAS, self._evm.deploy(sender, data), ())  # noqa: FBT003
        try:
            self.act(sender, to, data)
        except Reverted:
            return Receipt(False, NO_GAS, "", ())  # noqa: FBT003
        return Receipt(True, NO_GAS, "", ())  # noqa: FBT003

    @override
    def transact(self, sender: str, to: str | None, data: bytes) -> Receipt:
        if to is not None:
            self.act(sender, to, data)
            return Receipt(True, NO_GAS, "", ())  # noqa: FBT003
        return self.attempt(sender, to, data)

    @override
    def rpc(self, method: str, *params: Any) -> Any:
        """Answer the methods of a node that the tests use."""
        if method == "eth_call":
            call = params[0]
            answer = self.act(
                call.get("from", ZERO_SENDER), call["to"], bytes.fromhex(call["data"][2:])
            )
            return "0x" + answer.hex()
        if method == "evm_increaseTime":
            return self._set_time(self._now_s + params[0])
        if method == "eth_getStorageAt":
            address, slot, _ = params
            return hex(self._evm.storage(address, int(slot, 16)))
        assert method == "anvil_setCode", method
        address, code = params
        info = pyrevm.AccountInfo(code=bytes.fromhex(code[2:]))
        return self._evm.insert_account_info(address, info)

    @override
    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        checkpoint, now_s = self._evm.snapshot(), self._now_s
        try:
            yield
        finally:
            self._evm.revert(checkpoint)
            self._set_time(now_s)

    def _set_time(self, now_s: int) -> None:
        self._now_s = now_s
        self._evm.set_block_env(_block_at(now_s))


def safe_call(owner: str, target: str, calldata: bytes) -> bytes:
    """Return the calldata by which the one owner of a Safe has it make a call."""
    approval = bytes(12) + bytes.fromhex(owner[2:]) + bytes(32) + b"\x01"
    return EXEC_TRANSACTION.encode(
        target, 0, calldata, 0, 0, 0, 0, ZERO_SENDER, ZERO_SENDER, approval
    )


def _block_at(now_s: int) -> pyrevm.BlockEnv:
    return pyrevm.BlockEnv(number=1, timestamp=now_s, gas_limit=2**60)


def _revert_data(message: str) -> bytes:
    """Return the data of a revert, which only the message of the failure contains."""
    _, _, digits = message.partition("output: 0x")
    return bytes.fromhex(digits.split(" ")[0].rstrip(",})")) if digits else b""
