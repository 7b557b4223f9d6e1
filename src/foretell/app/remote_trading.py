"""Trading with engines in other processes: it serves clients, and sends requests to the engines."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from foretell.app.builders import Resources
from foretell.app.engine_processes import connection_loops, remote_shard, remote_shards
from foretell.domain.errors.families import Unavailable
from foretell.domain.values.hexadecimal import Bytes32
from foretell.domain.values.sharding import TREASURY, shard_of
from foretell.engine.protocol.client import RemoteShard
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.protocol.router import Shards
from foretell.runtime.loops import Loop
from foretell.runtime.worker import PollIntervals, run_worker
from foretell.trading.accounts.signers import Recover
from foretell.trading.context import TradingContext

NAMES_PACE: Final = PollIntervals(busy_s=1.0, idle_s=1.0)


class RemoteTrading(NamedTuple):
    """The context of the handlers, the connections to the engines, and the loops of both."""

    context: TradingContext
    shards: Sequence[RemoteShard]
    loops: dict[str, Loop]


def build_remote_trading(resources: Resources, recover: Recover) -> RemoteTrading:
    """Return trading with engines in other processes, not started."""
    shards = remote_shards(resources)
    treasury = remote_shard(resources, TREASURY) if len(shards) > 1 else None
    context = resources.trading_parts(recover).context(Shards(shards, treasury))
    for number, shard in enumerate(shards):
        shard.subscriber = _ShardSubscriber(context, number, len(shards))
    names = partial(
        run_worker, "names", partial(_load_names, context), NAMES_PACE, expected=(Unavailable,)
    )
    loops = context.loops() | connection_loops(shards, treasury) | {"names": names}
    return RemoteTrading(context, shards, loops)


class _ShardSubscriber:
    """Passes what one engine publishes to the handlers and streams."""

    def __init__(self, context: TradingContext, number: int, count: int) -> None:
        self._context = context
        self._number = number
        self._count = count

    def begin(self) -> None:
        """Drop the state of this engine's markets: the engine publishes all of it next."""
        self._context.begin(self._has)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Apply the effects of a command."""
        self._context.on_committed(committed)

    def _has(self, condition_id: Bytes32) -> bool:
        return shard_of(condition_id, self._count) == self._number


async def _load_names(context: TradingContext) -> bool:
    """Load the names of the markets that were published, and return that none is left."""
    await context.market_names.load(context.books.market_by_id)
    return False
