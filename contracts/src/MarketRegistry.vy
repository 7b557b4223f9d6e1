# pragma version 0.4.3
"""
@title MarketRegistry
@license Apache-2.0
@notice Who made each condition, and under which id its metadata is stored. Adapters write down the
        creator when a question is asked; the creator alone names the metadata.
"""

from access import ownership
from interfaces import IMarketRegistry

implements: IMarketRegistry
initializes: ownership
exports: (
    ownership.admin,
    ownership.pendingAdmin,
    ownership.isAdmin,
    ownership.admins,
    ownership.transferAdmin,
    ownership.acceptAdmin,
)

event AdapterAdded:
    adapter: indexed(address)


event AdapterRemoved:
    adapter: indexed(address)


event CreatorRecorded:
    conditionId: indexed(bytes32)
    creator: indexed(address)
    adapter: indexed(address)


event MetadataSet:
    conditionId: indexed(bytes32)
    creator: indexed(address)
    metadataId: String[METADATA_ID_BYTES_MAX]


METADATA_ID_BYTES_MAX: constant(uint256) = 128

isAdapter: public(HashMap[address, bool])
creatorOf: public(HashMap[bytes32, address])
metadataOf: public(HashMap[bytes32, String[METADATA_ID_BYTES_MAX]])


@deploy
def __init__(admin: address):
    ownership.__init__(admin)


@external
def addAdapter(adapter: address):
    """
    @notice Let an adapter write down creators.
    @param adapter The resolution adapter
    """
    ownership._check_admin()
    self.isAdapter[adapter] = True
    log AdapterAdded(adapter=adapter)


@external
def removeAdapter(adapter: address):
    """
    @notice Let an adapter write down creators no more.
    @param adapter The resolution adapter
    """
    ownership._check_admin()
    self.isAdapter[adapter] = False
    log AdapterRemoved(adapter=adapter)


@external
def recordCreator(conditionId: bytes32, creator: address):
    """
    @notice Write down who made a condition, once, for an adapter.
    @param conditionId The condition
    @param creator Who asked its question
    """
    if not self.isAdapter[msg.sender]:
        raw_revert(method_id("NotAdapter()"))
    if creator == empty(address):
        raw_revert(method_id("ZeroAddress()"))
    if self.creatorOf[conditionId] != empty(address):
        raw_revert(method_id("AlreadyRecorded()"))
    self.creatorOf[conditionId] = creator
    log CreatorRecorded(conditionId=conditionId, creator=creator, adapter=msg.sender)


@external
def setMetadata(conditionId: bytes32, metadataId: String[METADATA_ID_BYTES_MAX]):
    """
    @notice Name the stored metadata of a condition that the caller made; a later name replaces it.
    @param conditionId The condition
    @param metadataId The id of its metadata in storage
    """
    if msg.sender != self.creatorOf[conditionId]:
        raw_revert(method_id("NotCreator()"))
    if len(metadataId) == 0:
        raw_revert(method_id("EmptyMetadataId()"))
    self.metadataOf[conditionId] = metadataId
    log MetadataSet(conditionId=conditionId, creator=msg.sender, metadataId=metadataId)
