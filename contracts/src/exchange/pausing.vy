# pragma version 0.4.3
"""
@title Pausing
@license Apache-2.0
@notice The admin may stop matching. Nothing else ever stops: cancelling, and what people do with
        their tokens in the Conditional Tokens contract, do not ask here.
"""

from access import ownership

uses: ownership

event TradingPaused:
    pauser: indexed(address)


event TradingUnpaused:
    pauser: indexed(address)


paused: public(bool)


@external
def pauseTrading():
    """
    @notice Stop matching.
    """
    ownership._check_admin()
    self.paused = True
    log TradingPaused(pauser=msg.sender)


@external
def unpauseTrading():
    """
    @notice Let matching go on.
    """
    ownership._check_admin()
    self.paused = False
    log TradingUnpaused(pauser=msg.sender)


@internal
@view
def _check_trading():
    if self.paused:
        raw_revert(method_id("Paused()"))
