# pragma version 0.4.3
"""
@title Appointments
@license Apache-2.0
@notice Who the optimistic oracle's admin has named: the adapters that may ask, the arbiter that
        decides, the treasury that gets half of the bonds that are lost.
"""

from access import ownership

uses: ownership

event ArbiterChanged:
    arbiter: indexed(address)


event TreasuryChanged:
    treasury: indexed(address)


event AdapterAdded:
    adapter: indexed(address)


event AdapterRemoved:
    adapter: indexed(address)


arbiter: public(address)
treasury: public(address)
isAdapter: public(HashMap[address, bool])


@deploy
def __init__(arbiter_: address, treasury_: address):
    self._set_arbiter(arbiter_)
    self._set_treasury(treasury_)


@external
def setArbiter(arbiter: address):
    """
    @notice Let somebody else decide disputes.
    @param arbiter The account that decides second disputes
    """
    ownership._check_admin()
    self._set_arbiter(arbiter)


@external
def setTreasury(treasury: address):
    """
    @notice Send the halves of lost bonds to another account.
    @param treasury Who gets what the winners of disputes do not
    """
    ownership._check_admin()
    self._set_treasury(treasury)


@external
def addAdapter(adapter: address):
    """
    @notice Let an adapter request prices.
    @param adapter The resolution adapter
    """
    ownership._check_admin()
    self.isAdapter[adapter] = True
    log AdapterAdded(adapter=adapter)


@external
def removeAdapter(adapter: address):
    """
    @notice Let an adapter request prices no more. What it has requested goes on to its end.
    @param adapter The resolution adapter
    """
    ownership._check_admin()
    self.isAdapter[adapter] = False
    log AdapterRemoved(adapter=adapter)


@internal
def _set_arbiter(arbiter: address):
    if arbiter == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    self.arbiter = arbiter
    log ArbiterChanged(arbiter=arbiter)


@internal
def _set_treasury(treasury: address):
    if treasury == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    self.treasury = treasury
    log TreasuryChanged(treasury=treasury)
