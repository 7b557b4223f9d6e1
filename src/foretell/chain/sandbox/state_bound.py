"""The bound of the sandbox's chain: a state beyond it is not loaded, and a chain that has one is not ended."""

from pathlib import Path
from typing import Final

import structlog

from foretell.domain.errors.chain import ChainStateTooLarge

STATE_BYTES_MAX: Final = 768 * 1024**2
"""Of a state that is loaded: with what is added until the next start, a dump takes ten times as much memory."""
STATE_SHARE_NAMED: Final = 0.8
"""Of these bytes; a larger state is an error in the log, while there is time to act."""
CURE: Final = "move the data folder away, and start again with a new chain"

log = structlog.get_logger(__name__)


def check_loaded(folder: Path, state_bytes: int) -> None:
    """Refuse a state that is too large to be loaded; name one that is nearly so."""
    if state_bytes > STATE_BYTES_MAX:
        raise ChainStateTooLarge(folder, state_bytes, STATE_BYTES_MAX)
    if state_bytes > STATE_BYTES_MAX * STATE_SHARE_NAMED:
        _log_error("chain state is nearly too large to be loaded", state_bytes)


def can_be_loaded(state_bytes: int) -> bool:
    """Return whether the next start would load a state; name one that it would refuse."""
    if state_bytes > STATE_BYTES_MAX:
        _log_error("chain state is too large to be loaded, so the chain goes on", state_bytes)
        return False
    return True


def _log_error(event: str, state_bytes: int) -> None:
    log.error(event, state_bytes=state_bytes, bytes_max=STATE_BYTES_MAX, cure=CURE)
