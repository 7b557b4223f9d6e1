# pragma version 0.4.3
"""
@title Ownership
@license Apache-2.0
@notice One admin. The role passes in two steps, so that it never lands on an address that nobody holds.
"""

event AdminTransferStarted:
    pendingAdmin: indexed(address)
    admin: indexed(address)


event NewAdmin:
    newAdminAddress: indexed(address)
    admin: indexed(address)


event RemovedAdmin:
    removedAdmin: indexed(address)
    admin: indexed(address)


admin: public(address)
pendingAdmin: public(address)


@deploy
def __init__(admin_: address):
    if admin_ == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    self.admin = admin_
    log NewAdmin(newAdminAddress=admin_, admin=msg.sender)


@external
@view
def isAdmin(account: address) -> bool:
    """
    @notice Whether the account is the admin.
    @param account The account
    @return True for the one admin
    """
    return account == self.admin


@external
@view
def admins(account: address) -> uint256:
    """
    @notice Whether the account is the admin, by the name that the ecosystem's clients call.
    @param account The account
    @return 1 or 0
    """
    return 1 if account == self.admin else 0


@external
def transferAdmin(newAdmin: address):
    """
    @notice Offer the role to another address, for the admin.
    @param newAdmin The address; zero takes an offer back
    """
    self._check_admin()
    self.pendingAdmin = newAdmin
    log AdminTransferStarted(pendingAdmin=newAdmin, admin=msg.sender)


@external
def acceptAdmin():
    """
    @notice Take the role that was offered to the caller.
    """
    if msg.sender != self.pendingAdmin:
        raw_revert(method_id("NotPendingAdmin()"))
    former: address = self.admin
    self.admin = msg.sender
    self.pendingAdmin = empty(address)
    log NewAdmin(newAdminAddress=msg.sender, admin=former)
    log RemovedAdmin(removedAdmin=former, admin=msg.sender)


@internal
@view
def _check_admin():
    if msg.sender != self.admin:
        raw_revert(method_id("NotAdmin()"))
