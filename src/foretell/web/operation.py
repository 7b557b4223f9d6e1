"""The state of the installation for its operator, behind the operator's token."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.domain.errors.web import WrongOperatorToken
from foretell.domain.values.hexadecimal import Address, checksum_address
from foretell.edge.codec import WireObject
from foretell.store.database import Database
from foretell.store.queries.operation import (
    GasAccount,
    load_due_markets,
    load_halted_markets,
    load_indexed_head,
    load_queued_work,
    load_sending_accounts,
)

WORK_LATE_MS: Final = 120_000
"""Work that waits for longer than this is shown as late."""
BLOCKS_BEHIND_MAX: Final = 20


class WorkState(WireObject, frozen=True):
    """Work of one kind in one status."""

    kind: str
    status: str
    count: int
    oldest_age_ms: int
    is_late: bool


class ChainState(WireObject, frozen=True):
    """The chain, as the node has it and as it is indexed."""

    head_block: int
    indexed_block: int
    is_behind: bool


class DueState(WireObject, frozen=True):
    """A market after its end that nobody has resolved."""

    condition_id: str
    question: str
    event_slug: str
    ended_at_ms: int


class HaltState(WireObject, frozen=True):
    """A market that is halted: the chain lost it by a reorganization."""

    condition_id: str
    question: str
    event_slug: str
    since_ms: int


class AccountState(WireObject, frozen=True):
    """An account that a product sends from, and what it has for gas."""

    product: str
    address: str
    balance_wei: str


class InstallationState(WireObject, frozen=True):
    """The answer to the operator."""

    server_ms: int
    chain: ChainState
    work: list[WorkState]
    due: list[DueState]
    halts: list[HaltState]
    accounts: list[AccountState]


@dataclass(frozen=True, slots=True)
class OperatorView:
    """What the state is read from."""

    database: Database
    rpc: Rpc
    token: str
    now_ms: Callable[[], int]

    def check(self, token: str) -> None:
        """Refuse a token that is not the operator's."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            raise WrongOperatorToken

    async def state(self) -> InstallationState:
        """Return the state: one read of the tables, then the node's head and balances."""
        now_ms = self.now_ms()
        async with self.database.public_reading() as tx:
            work = await load_queued_work(tx)
            indexed = await load_indexed_head(tx)
            due = await load_due_markets(tx, now_ms)
            halted = await load_halted_markets(tx)
            senders = await load_sending_accounts(tx)
        head = quantity_of(await self.rpc.call("eth_blockNumber"), "eth_blockNumber")
        indexed_block = 0 if indexed is None else indexed.block_number
        return InstallationState(
            server_ms=now_ms,
            chain=ChainState(
                head_block=head,
                indexed_block=indexed_block,
                is_behind=head - indexed_block > BLOCKS_BEHIND_MAX,
            ),
            work=[
                WorkState(
                    kind=each.kind,
                    status=each.status,
                    count=each.size,
                    oldest_age_ms=now_ms - each.oldest_at_ms,
                    is_late=now_ms - each.oldest_at_ms > WORK_LATE_MS,
                )
                for each in work
            ],
            due=[
                DueState(
                    condition_id=each.condition_id,
                    question=each.question,
                    event_slug=each.event_slug,
                    ended_at_ms=each.ends_at_ms,
                )
                for each in due
            ],
            halts=[HaltState(*each) for each in halted],
            accounts=[await self._account(each) for each in senders],
        )

    async def _account(self, sender: GasAccount) -> AccountState:
        balance = await self.rpc.call("eth_getBalance", sender.address, "latest")
        return AccountState(
            product=sender.product,
            address=checksum_address(Address(sender.address)),
            balance_wei=str(quantity_of(balance, "eth_getBalance")),
        )
