# pragma version 0.4.3
# pragma optimize codesize
"""
@title Exchange
@license Apache-2.0
@notice Where signed orders settle. This file only puts the concerns together, each in its own file:
        what an order is (`orders`, `packed`) and who approved it (`profiles`, `signatures`,
        `preapproval`); what it may still do (`status`, `stops`, `validity`, `cancelling`); what may
        be traded (`token_registry`); who may do what (`ownership`, `roles`, `pausing`); how orders
        meet (`crossing`, `matching`), what they pay (`fees`) and how assets move (`settling`,
        `custody`, `owed_tokens`, `receiver`, `sweeping`, `trade_logs`).
"""

# Optimized for size: 900 bytes less for a few gas a maker. The code and its immutable values, 768 bytes,
# must fit 24,576 together (EIP-170).

from access import ownership
from exchange import cancelling
from exchange import custody
from exchange import fees
from exchange import matching
from exchange import orders
from exchange import owed_tokens
from exchange import packed
from exchange import parameters
from exchange import pausing
from exchange import preapproval
from exchange import profiles
from exchange import receiver
from exchange import token_registry
from exchange import roles
from exchange import settling
from exchange import signatures
from exchange import status
from exchange import stops
from exchange import sweeping
from exchange import trade_logs
from exchange import validity

# Their order is that of their storage, whose places are those of earlier versions where they have one: what
# an earlier version reads as its pause and its fee limit is zero here, and its fee receiver is ours.
initializes: ownership
initializes: roles[ownership := ownership]
initializes: preapproval[profiles := profiles]
initializes: pausing[ownership := ownership, parameters := parameters]
initializes: custody[owed_tokens := owed_tokens]
initializes: profiles
initializes: signatures
initializes: status
initializes: stops
initializes: token_registry[custody := custody, roles := roles]
initializes: parameters
initializes: fees[ownership := ownership, parameters := parameters]
initializes: receiver[custody := custody]
initializes: trade_logs
initializes: settling[custody := custody]
initializes: sweeping[parameters := parameters]
initializes: validity[
    preapproval := preapproval,
    profiles := profiles,
    signatures := signatures,
    status := status,
    stops := stops,
    token_registry := token_registry,
]
initializes: cancelling[profiles := profiles, signatures := signatures, status := status]
initializes: packed[
    profiles := profiles,
    signatures := signatures,
    status := status,
    stops := stops,
    validity := validity,
]
initializes: matching[
    custody := custody,
    packed := packed,
    parameters := parameters,
    roles := roles,
    settling := settling,
    status := status,
    stops := stops,
    token_registry := token_registry,
    validity := validity,
]
initializes: owed_tokens

exports: (
    ownership.admin,
    ownership.pendingAdmin,
    ownership.isAdmin,
    ownership.admins,
    ownership.transferAdmin,
    ownership.acceptAdmin,
)
exports: (
    roles.isOperator,
    roles.operators,
    roles.addOperator,
    roles.removeOperator,
    roles.isRegistrar,
    roles.addRegistrar,
    roles.removeRegistrar,
)
exports: (pausing.paused, pausing.pauseTrading, pausing.unpauseTrading)
exports: (
    custody.getCollateral,
    custody.getCtf,
    custody.getSplitter,
    custody.getTokenCollateral,
    custody.claimTokens,
    owed_tokens.owedTokens,
)
exports: (
    profiles.profileCount,
    profiles.domainSeparator,
    profiles.eip712Domain,
    profiles.structVersion,
    profiles.hashOrder,
)
exports: (
    signatures.safeAddress,
    signatures.getSafeAddress,
    signatures.safeFactory,
    signatures.safeInitCodeHash,
    signatures.proxyFactory,
)
exports: (status.orderStatus, status.getOrderStatus)
exports: (
    stops.nonces,
    stops.isValidNonce,
    stops.incrementNonce,
    stops.cancelledBefore,
    stops.cancelBefore,
    stops.isOwnerSigning,
    stops.setOwnerSigning,
)
exports: (
    preapproval.invalidatePreapprovedOrder,
    preapproval.isPreapproved,
)
exports: sweeping.sweep
exports: (
    token_registry.registry,
    token_registry.registerToken,
    token_registry.getComplement,
    token_registry.getConditionId,
    token_registry.validateTokenId,
    token_registry.validateComplement,
)
exports: (
    fees.feeReceiver,
    fees.maxFeeRateBps,
    fees.nextMaxFeeRateBps,
    fees.feeRateBpsMax,
    fees.getMaxFeeRate,
    fees.setFeeReceiver,
    fees.setMaxFeeRateBps,
)
exports: (validity.validateOrder, validity.remaining)
exports: (matching.makersMax, matching.matchOrders)
exports: (
    receiver.onERC1155Received,
    receiver.onERC1155BatchReceived,
    receiver.supportsInterface,
)


@deploy
def __init__(
    collateral: address,
    conditionalTokens: address,
    splitter: address,
    tokenCollateral: address,
    safeFactory: address,
    safeInitCodeHash: bytes32,
    proxyFactory: address,
    admin: address,
    feeReceiver: address,
    profileNames: DynArray[String[profiles.NAME_BYTES_MAX], profiles.PROFILES_MAX],
    profileVersions: DynArray[String[profiles.VERSION_BYTES_MAX], profiles.PROFILES_MAX],
    profileContracts: DynArray[address, profiles.PROFILES_MAX],
    profileStructs: DynArray[uint256, profiles.PROFILES_MAX],
):
    """
    @param collateral What people pay and are paid with
    @param conditionalTokens The ERC-1155 that holds the positions
    @param splitter Who splits and merges: Conditional Tokens, or the neg-risk adapter
    @param tokenCollateral What token ids are derived from: the collateral, or its wrapping
    @param safeFactory The factory whose Safes may be makers
    @param safeInitCodeHash The hash of those Safes' creation code
    @param proxyFactory The factory whose proxy wallets may be makers; zero for none
    @param admin Who names operators and registrars, sets fees and may pause
    @param feeReceiver Who gets the fees
    @param profileNames The EIP-712 domain names of the signing profiles
    @param profileVersions Their domain versions
    @param profileContracts Their verifying contracts; the zero address is this exchange
    @param profileStructs Their order structs, 1 or 2
    """
    ownership.__init__(admin)
    custody.__init__(collateral, conditionalTokens, splitter, tokenCollateral)
    profiles.__init__(profileNames, profileVersions, profileContracts, profileStructs)
    signatures.__init__(safeFactory, safeInitCodeHash, proxyFactory)
    fees.__init__(feeReceiver)


@external
@nonreentrant
def __default__():
    """
    @notice The calls that are decoded by hand: `matchPacked(bytes)`, which is `matchOrders` in a fifth
            of its calldata; `cancelOrder` and `cancelOrders`, with our tuple or that of the ecosystem's
            v1 exchange, since a contract cannot declare two functions of one name; `preapproveOrder`.
    """
    selector: bytes4 = empty(bytes4)
    if len(msg.data) >= orders.ARGUMENTS_AT:
        selector = convert(slice(msg.data, 0, orders.ARGUMENTS_AT), bytes4)
    if selector == packed.MATCH_PACKED:
        matching._match_packed()
    elif selector == cancelling.CANCEL_ORDER or selector == cancelling.CANCEL_ORDER_V1:
        cancelling._cancel_one(selector == cancelling.CANCEL_ORDER_V1)
    elif selector == cancelling.CANCEL_ORDERS or selector == cancelling.CANCEL_ORDERS_V1:
        cancelling._cancel_many(selector == cancelling.CANCEL_ORDERS_V1)
    elif selector == preapproval.PREAPPROVE:
        preapproval._preapprove()
    else:
        raw_revert(method_id("UnknownCall()"))
