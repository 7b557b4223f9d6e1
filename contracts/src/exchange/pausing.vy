# pragma version 0.4.3
"""
@title Pausing
@license Apache-2.0
@notice The admin may stop matching. Nothing else ever stops: cancelling, and what people do with
        their tokens in the Conditional Tokens contract, do not ask here.
"""

from access import ownership
from exchange import parameters

uses: ownership
uses: parameters

event TradingPaused:
    pauser: indexed(address)


event TradingUnpaused:
    pauser: indexed(address)


@external
@view
def paused() -> bool:
    """
    @notice Whether matching is stopped.
    @return True from a pause until its end
    """
    return parameters.word & parameters.PAUSED != 0


@external
def pauseTrading():
    """
    @notice Stop matching.
    """
    ownership._check_admin()
    parameters.word |= parameters.PAUSED
    log TradingPaused(pauser=msg.sender)


@external
def unpauseTrading():
    """
    @notice Let matching go on.
    """
    ownership._check_admin()
    parameters.word &= ~parameters.PAUSED
    log TradingUnpaused(pauser=msg.sender)


@internal
@pure
def _check_trading(word: uint256):
    """
    @dev `word` is that of `parameters`.
    """
    if word & parameters.PAUSED != 0:
        raw_revert(method_id("Paused()"))
