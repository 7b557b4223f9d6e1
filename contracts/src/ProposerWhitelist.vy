# pragma version 0.4.3
"""
@title ProposerWhitelist
@license Apache-2.0
@notice The accounts that may resolve one creator's markets. The creator alone changes the list.
"""

from interfaces import IProposerWhitelist

implements: IProposerWhitelist

event ProposerAdded:
    proposer: indexed(address)


event ProposerRemoved:
    proposer: indexed(address)


PROPOSERS_MAX: constant(uint256) = 100

creator: public(immutable(address))

proposers: DynArray[address, PROPOSERS_MAX]
# One more than the place in the list; zero for those not on it.
place: HashMap[address, uint256]


@deploy
def __init__(creator_: address, initialProposers: DynArray[address, PROPOSERS_MAX]):
    if creator_ == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    creator = creator_
    for proposer: address in initialProposers:
        self._add(proposer)


@external
@view
def isProposer(account: address) -> bool:
    """
    @notice Whether the account may resolve the creator's markets.
    @param account The account
    @return True for one on the list
    """
    return self.place[account] != 0


@external
@view
def getProposers() -> DynArray[address, PROPOSERS_MAX]:
    """
    @notice All of them, in no order that means anything.
    @return The accounts
    """
    return self.proposers


@external
@view
def getProposerCount() -> uint256:
    """
    @notice How many there are.
    @return The number
    """
    return len(self.proposers)


@external
def addProposers(added: DynArray[address, PROPOSERS_MAX]):
    """
    @notice Put accounts on the list, all of them or none.
    @param added The accounts
    """
    self._check_creator()
    for proposer: address in added:
        self._add(proposer)


@external
def removeProposers(removed: DynArray[address, PROPOSERS_MAX]):
    """
    @notice Take accounts off the list, all of them or none.
    @param removed The accounts
    """
    self._check_creator()
    for proposer: address in removed:
        self._remove(proposer)


@internal
@view
def _check_creator():
    if msg.sender != creator:
        raw_revert(method_id("NotCreator()"))


@internal
def _add(proposer: address):
    if proposer == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    if self.place[proposer] != 0:
        raw_revert(method_id("AlreadyProposer()"))
    if len(self.proposers) == PROPOSERS_MAX:
        raw_revert(method_id("TooManyProposers()"))
    self.proposers.append(proposer)
    self.place[proposer] = len(self.proposers)
    log ProposerAdded(proposer=proposer)


@internal
def _remove(proposer: address):
    place: uint256 = self.place[proposer]
    if place == 0:
        raw_revert(method_id("NotProposer()"))
    last: address = self.proposers.pop()
    if last != proposer:
        self.proposers[place - 1] = last
        self.place[last] = place
    self.place[proposer] = 0
    log ProposerRemoved(proposer=proposer)
