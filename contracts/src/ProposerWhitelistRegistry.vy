# pragma version 0.4.3
"""
@title ProposerWhitelistRegistry
@license Apache-2.0
@notice Which whitelist each creator has chosen. Choosing another replaces the first, also for the
        markets that are open.
"""

from interfaces import IProposerWhitelist
from interfaces import IProposerWhitelistRegistry

implements: IProposerWhitelistRegistry

event WhitelistRegistered:
    creator: indexed(address)
    whitelist: indexed(address)


whitelistOf: public(HashMap[address, address])


@external
def registerWhitelist(whitelist: address):
    """
    @notice Choose a whitelist whose creator is the caller.
    @param whitelist The list's address
    """
    if not whitelist.is_contract:
        raw_revert(method_id("InvalidWhitelist()"))
    if staticcall IProposerWhitelist(whitelist).creator() != msg.sender:
        raw_revert(method_id("NotCreator()"))
    self.whitelistOf[msg.sender] = whitelist
    log WhitelistRegistered(creator=msg.sender, whitelist=whitelist)
