"""The figures of all blocks up to one, computed from a node's logs."""

from collections.abc import Mapping, Sequence

from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.values.hexadecimal import keccak256
from foretell.reconciliation.chain_figures import ChainFigures, ReadContracts
from foretell.reconciliation.fetched_logs import (
    FetchedBlocks,
    FetchedLog,
    address_in,
    fetch_blocks,
    fetch_times,
    topic_of,
    word_text,
)
from foretell.reconciliation.transaction_logs import BINARY, TokenIds, TransactionLogs

_PREPARED = topic_of("ConditionPreparation(bytes32,address,bytes32,uint256)")


class Recount:
    """Figures that follow the chain block by block."""

    def __init__(self, rpc: Rpc, deployment: Deployment, figures: ChainFigures) -> None:
        self.figures = figures
        self._rpc = rpc
        self._next_block = deployment.start_block

    async def count_to(self, last_block: int) -> None:
        """Add the logs of all blocks up to this one, in order.

        Raises ChainInconsistent when later blocks have been counted: the chain has been reorganized since.
        """
        if last_block < self._next_block - 1:
            raise ChainInconsistent(f"block {self._next_block - 1} was removed; verify again")
        rpc, contracts = self._rpc, self.figures.contracts
        async for found in fetch_blocks(rpc, contracts.all, self._next_block, last_block):
            times = await fetch_times(rpc, found.hash_by_block)
            token_ids = await fetch_token_ids(rpc, contracts, found.logs)
            count_blocks(self.figures, found, token_ids, times)
            self._next_block = found.last + 1


def contracts_of(deployment: Deployment) -> ReadContracts:
    """Return the contracts of a deployment that hold or move collateral and tokens, and the oracle."""
    has_events = ContractName.NEG_RISK_ADAPTER in deployment.contracts
    has_oracle = ContractName.OPTIMISTIC_ORACLE in deployment.contracts
    return ReadContracts(
        deployment.collateral,
        deployment.conditional_tokens,
        frozenset(deployment.exchanges),
        deployment.address(ContractName.NEG_RISK_ADAPTER) if has_events else "",
        deployment.address(ContractName.WRAPPED_COLLATERAL) if has_events else "",
        deployment.address(ContractName.OPTIMISTIC_ORACLE) if has_oracle else "",
    )


def count_blocks(
    figures: ChainFigures,
    found: FetchedBlocks,
    token_ids: TokenIds,
    time_by_block: Mapping[int, int],
) -> None:
    """Add blocks to the figures, transaction by transaction."""
    of_block: dict[int, dict[str, list[FetchedLog]]] = {}
    for log in found.logs:
        of_block.setdefault(log.block_number, {}).setdefault(log.tx_hash, []).append(log)
    for number, logs_by_tx in of_block.items():
        at_s = time_by_block[number]
        for logs in logs_by_tx.values():
            reading = TransactionLogs(figures, token_ids, at_s)
            for log in logs:
                reading.read(log)
            reading.close()
        figures.close_block(number, at_s)


async def fetch_token_ids(
    rpc: Rpc, contracts: ReadContracts, logs: Sequence[FetchedLog]
) -> TokenIds:
    """Return the tokens of the binary conditions that these logs prepare, as the contract has them."""
    prepared = [
        (word_text(log.topics[1]), address_in(log.topics[2]))
        for log in logs
        if log.contract == contracts.tokens
        and log.topics[:1] == (_PREPARED,)
        and log.words == (BINARY,)
    ]
    none = "0" * 64
    collections = await _call_all(
        rpc,
        contracts.tokens,
        [
            ("getCollectionId(bytes32,bytes32,uint256)", f"{none}{condition[2:]}{index_set:064x}")
            for condition, _ in prepared
            for index_set in (1, 2)
        ],
    )
    backings = [contracts.backing(oracle) for _, oracle in prepared for _ in range(2)]
    tokens = await _call_all(
        rpc,
        contracts.tokens,
        [
            ("getPositionId(address,bytes32)", f"{backing[2:]:0>64}{collection:064x}")
            for backing, collection in zip(backings, collections, strict=True)
        ],
    )
    return {
        condition: (str(yes), str(no))
        for (condition, _), yes, no in zip(prepared, tokens[::2], tokens[1::2], strict=True)
    }


async def _call_all(rpc: Rpc, target: str, calls: Sequence[tuple[str, str]]) -> list[int]:
    answers = await rpc.batch(
        [
            ("eth_call", [{"to": target, "data": _selector(name) + words}, "latest"])
            for name, words in calls
        ]
    )
    try:
        return [int(answer, 16) for answer in answers]
    except (TypeError, ValueError) as error:
        raise ChainInconsistent("the contract of all tokens gave no token id") from error


def _selector(signature: str) -> str:
    return "0x" + keccak256(signature.encode())[:4].hex()
