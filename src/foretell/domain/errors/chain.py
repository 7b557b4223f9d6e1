"""Refusals of the chain, of transactions sent to it and of data read from it.

Their place in the tree of refusals: see `families`.
"""

from typing_extensions import override

from foretell.domain.errors.families import Conflict, InvalidInput, Unavailable, Upstream
from foretell.domain.errors.node_messages import redacted


class ChainUnavailable(Upstream):
    """The node did not answer, or answered with something that is not JSON-RPC."""

    definite = False

    def __init__(self, method: str, cause: str, **details: int) -> None:
        super().__init__(
            f"the node gave no valid response to {method}: {cause}", method=method, **details
        )


class AnswerTooLarge(ChainUnavailable):
    """The answer has more bytes than its reader allows, which is the fault of what was asked for, such as a contract.

    Readers that name a bound expect it; it is part of no response to a client.
    """

    def __init__(self, method: str, bytes_max: int) -> None:
        Upstream.__init__(
            self, f"the answer to {method} has more than {bytes_max} bytes", method=method
        )


class WrongChain(ChainUnavailable):
    """The node serves another chain than the configured one, so that its answers count as none."""

    def __init__(self, seen: int, wanted: int) -> None:
        super().__init__(
            "eth_chainId",
            f"it serves chain {seen}, and chain {wanted} is required; check FORETELL_RPC_URL and"
            " FORETELL_CHAIN_ID",
            seen=seen,
            wanted=wanted,
        )


class RpcRefused(Upstream):
    """The node answered with an error; its message is kept redacted."""

    def __init__(self, method: str, rpc_code: int, rpc_message: str, data: str = "") -> None:
        words = redacted(rpc_message)
        super().__init__(f"the node refused {method}: {words}", method=method, rpc_code=rpc_code)
        self.rpc_code = rpc_code
        self.rpc_message = words
        self.data = data


class ExecutionReverted(RpcRefused):
    """The node ran a call and the contract reverted it."""


class DevChainFailed(Unavailable):
    """The sandbox's chain could not be started."""

    def __init__(self, code: int, place: object) -> None:
        super().__init__(
            f"anvil exited with code {code} when it was started; its output is in {place}"
        )


class ChainStateDamaged(Unavailable):
    """No saved state of the sandbox's chain can be read."""

    def __init__(self, folder: object) -> None:
        super().__init__(
            f"every saved state of the chain in {folder} is damaged: move the data folder away, and start"
            " again with a new chain"
        )


class ChainStateTooLarge(Unavailable):
    """The saved state of the sandbox's chain does not fit into the memory that the chain may use."""

    def __init__(self, folder: object, state_bytes: int, bytes_max: int) -> None:
        super().__init__(
            f"the saved state of the chain in {folder} has {state_bytes:,} bytes, and at most {bytes_max:,} are"
            " loaded: move the data folder away, and start again with a new chain",
            state_bytes=state_bytes,
        )


class ChainStartTooSlow(Unavailable, TimeoutError):
    """The sandbox's chain did not answer in time after its start; a supervisor starts it again."""

    def __init__(self, folder: object, deadline_s: float, state_bytes: int) -> None:
        super().__init__(
            f"the chain in {folder} did not answer within {deadline_s:.0f} s of its start from a state of"
            f" {state_bytes:,} bytes: stop other programs and start again, or move the data folder away and"
            " start with a new chain",
            state_bytes=state_bytes,
        )

    @override
    def __str__(self) -> str:
        """Return the message: an OSError would show its arguments."""
        return self.message


class DevChainStillRuns(Unavailable):
    """An earlier process of the sandbox's chain does not end."""

    def __init__(self, folder: object, process_id: int, deadline_s: float) -> None:
        super().__init__(
            f"process {process_id}, an earlier chain of {folder}, did not end within {deadline_s:g} s: it may be"
            " storing its state; start again later, or end it with kill -9",
            process_id=process_id,
        )


class ProgramMissing(Unavailable):
    """A program that this process starts is not installed."""

    def __init__(self, program: str, place: object) -> None:
        super().__init__(
            f"{program} is not installed: it was not found in {place}", program=program
        )


class MalformedTransaction(InvalidInput):
    """The bytes are not a signed transaction of the one shape that is sent here."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"the transaction must be {wanted}", field="transaction")


class MalformedCalldata(InvalidInput):
    """Calldata is not the call that its place requires."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"data must be {wanted}", field="data")


class TxIdReused(Conflict):
    """Another transaction was sent before under the same id."""

    def __init__(self, tx_id: str) -> None:
        super().__init__(
            f"transaction {tx_id} was sent before with another target or other calldata",
            tx_id=tx_id,
        )


class NonceContended(Conflict):
    """Another process sends from the same account and takes its nonces."""

    def __init__(self, account: str, attempts: int) -> None:
        super().__init__(
            f"no nonce of {account} could be reserved in {attempts} attempts: another process sends from"
            " this account; stop it"
        )


class ChainInconsistent(Upstream):
    """The node's answers contradict each other: its head moved during the read, or logs are missing."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the node's answers contradict each other: {cause}")


class NothingIndexed(Unavailable):
    """The tables of the chain are empty: the indexer has read no block yet."""

    def __init__(self) -> None:
        super().__init__("no block of the chain is indexed yet; try again", retry_after_s=1)


class SandboxOnly(Unavailable):
    """An operation of the sandbox was requested on another chain."""

    def __init__(self, what: str, where: str, remedy: str = "") -> None:
        then = f"; {remedy}" if remedy else ""
        super().__init__(f"{what} is allowed in the sandbox only, and this is {where}{then}")


class InvalidDeployment(Unavailable):
    """A deployment file does not match its chain, or contradicts itself."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the deployment cannot be used: {cause}")


class CallFailed(Upstream):
    """A transaction reverted in its block."""

    def __init__(self, tx_hash: str) -> None:
        super().__init__(f"transaction {tx_hash} was mined and reverted", tx_hash=tx_hash)


class TransactionReplaced(Conflict):
    """Another transaction of the account has used the nonce."""

    def __init__(self, tx_hash: str) -> None:
        super().__init__(
            f"transaction {tx_hash} cannot be mined: another one of its account has its nonce",
            tx_hash=tx_hash,
        )


class ExchangeClosed(Unavailable):
    """The exchange settles no trade for the operator's account."""

    def __init__(self, exchange: str, cause: str) -> None:
        super().__init__(f"the exchange {exchange} settles no trades: {cause}")


class ReorgTooDeep(Upstream):
    """The chain was reorganized, or went back, below the oldest block that is kept."""

    def __init__(self, last_block: int, blocks_max: int) -> None:
        super().__init__(
            f"the chain has none of the {blocks_max} blocks indexed up to {last_block}: the tables"
            " cannot be unwound that far; stop every process, and start again with a copy of the database whose last"
            " block the chain still has, or with a new database, into which the chain is indexed again",
            last_block=last_block,
        )
