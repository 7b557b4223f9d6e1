"""The refusals of the chain, and of what is sent to it and read from it.

They belong to the tree at the top of `errors.py`.
"""

from foretell.domain.errors.families import Conflict, InvalidInput, Unavailable, Upstream
from foretell.domain.errors.node_messages import told


class ChainUnavailable(Upstream):
    """The node did not answer, or answered with something that is not JSON-RPC."""

    definite = False

    def __init__(self, method: str, cause: str) -> None:
        super().__init__(f"the chain did not answer {method}: {cause}", method=method)


class RpcRefused(Upstream):
    """The node answered with an error; of its words only what may be told is kept."""

    def __init__(self, method: str, rpc_code: int, rpc_message: str, data: str = "") -> None:
        words = told(rpc_message)
        super().__init__(f"{method} was refused: {words}", method=method, rpc_code=rpc_code)
        self.rpc_code = rpc_code
        self.rpc_message = words
        self.data = data


class ExecutionReverted(RpcRefused):
    """The node ran a call, and the contract reverted it or broke off in the middle."""


class DevChainFailed(Unavailable):
    """The sandbox's chain could not be started."""

    def __init__(self, code: int, place: object) -> None:
        super().__init__(f"anvil could not be started ({code}); look into {place}")


class ProgramMissing(Unavailable):
    """A program that we start is not installed."""

    def __init__(self, program: str, place: object) -> None:
        super().__init__(f"{program} is not installed: looked for it in {place}", program=program)


class MalformedTransaction(InvalidInput):
    """The bytes of a signed transaction are not one that we could have made."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"the transaction must be {wanted}", field="transaction")


class MalformedCalldata(InvalidInput):
    """A call's bytes are not the call that they should be."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"data must be {wanted}", field="data")


class TxIdReused(Conflict):
    """A transaction was sent before under the same id, and it does something else."""

    def __init__(self, tx_id: str) -> None:
        super().__init__(f"{tx_id} was sent before with another target or calldata", tx_id=tx_id)


class NonceContended(Conflict):
    """Somebody else takes the account's nonces as fast as we do."""

    def __init__(self, account: str, attempts: int) -> None:
        super().__init__(f"no nonce of {account} could be reserved in {attempts} attempts")


class WrongChain(Unavailable):
    """The node serves another chain than the one that is meant."""

    def __init__(self, seen: int, wanted: int) -> None:
        super().__init__(
            f"the node serves chain {seen}, and {wanted} is wanted", seen=seen, wanted=wanted
        )


class ChainInconsistent(Upstream):
    """Answers of the node do not fit each other: it moved while we read, or left something out."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the node's answers do not fit each other: {cause}")


class SandboxOnly(Unavailable):
    """Something that only a sandbox may do was asked of another chain."""

    def __init__(self, what: str, where: str, remedy: str = "") -> None:
        then = f"; {remedy}" if remedy else ""
        super().__init__(f"{what} belongs to the sandbox alone, and this is {where}{then}")


class DeploymentUnfit(Unavailable):
    """A deployment's file and its chain, or its parts, do not fit each other."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the deployment cannot be used: {cause}")


class CallFailed(Upstream):
    """A call of a contract reverted in its block."""

    def __init__(self, tx_hash: str) -> None:
        super().__init__(f"transaction {tx_hash} reverted", tx_hash=tx_hash)


class ExchangeClosed(Unavailable):
    """The exchange settles nothing at all for the operator's account."""

    def __init__(self, exchange: str, cause: str) -> None:
        super().__init__(f"the exchange {exchange} settles nothing: {cause}")


class ReorgTooDeep(Upstream):
    """The chain changed below the blocks that are kept, so nobody knows where it parted."""

    def __init__(self, last_block: int, blocks_max: int) -> None:
        super().__init__(
            f"the chain has none of the {blocks_max} blocks indexed up to {last_block}: the tables"
            " cannot be unwound so far, and must be indexed anew",
            last_block=last_block,
        )
