# pragma version 0.4.3
"""
@title Roles
@license Apache-2.0
@notice Operators match orders, registrars register tokens. The admin names both and is neither by itself.
"""

from access import ownership

uses: ownership

event NewOperator:
    newOperatorAddress: indexed(address)
    admin: indexed(address)


event RemovedOperator:
    removedOperator: indexed(address)
    admin: indexed(address)


event NewRegistrar:
    newRegistrar: indexed(address)
    admin: indexed(address)


event RemovedRegistrar:
    removedRegistrar: indexed(address)
    admin: indexed(address)


isOperator: public(HashMap[address, bool])
isRegistrar: public(HashMap[address, bool])


@external
@view
def operators(account: address) -> uint256:
    """
    @notice Whether an account is an operator, by the name that the ecosystem's clients call.
    @param account The account
    @return 1 or 0
    """
    return 1 if self.isOperator[account] else 0


@external
def addOperator(operator: address):
    """
    @notice Let the account match orders, for the admin.
    @param operator The account
    """
    ownership._check_admin()
    self.isOperator[operator] = True
    log NewOperator(newOperatorAddress=operator, admin=msg.sender)


@external
def removeOperator(operator: address):
    """
    @notice Let the account match orders no more, for the admin.
    @param operator The account
    """
    ownership._check_admin()
    self.isOperator[operator] = False
    log RemovedOperator(removedOperator=operator, admin=msg.sender)


@external
def addRegistrar(registrar: address):
    """
    @notice Let the account register tokens, for the admin.
    @param registrar The account
    """
    ownership._check_admin()
    self.isRegistrar[registrar] = True
    log NewRegistrar(newRegistrar=registrar, admin=msg.sender)


@external
def removeRegistrar(registrar: address):
    """
    @notice Let the account register tokens no more, for the admin.
    @param registrar The account
    """
    ownership._check_admin()
    self.isRegistrar[registrar] = False
    log RemovedRegistrar(removedRegistrar=registrar, admin=msg.sender)


@internal
@view
def _check_operator():
    if not self.isOperator[msg.sender]:
        raw_revert(method_id("NotOperator()"))


@internal
@view
def _check_registrar():
    if not self.isRegistrar[msg.sender]:
        raw_revert(method_id("NotRegistrar()"))
