# pragma version 0.4.3
"""
@title Profiles
@license Apache-2.0
@notice A signing profile is an order struct and an EIP-712 domain. The list is fixed at deployment;
        orders of different profiles match each other. An order's hash is its digest under its
        profile, which is what was signed.
"""

from exchange import orders

PROFILES_MAX: constant(uint256) = 8
NAME_BYTES_MAX: constant(uint256) = 64
VERSION_BYTES_MAX: constant(uint256) = 16

V1: constant(uint256) = 1
V2: constant(uint256) = 2

# Name, version, chain id and verifying contract.
DOMAIN_FIELDS: constant(bytes1) = 0x0f

# The bytes 19 and 01, with which typed data begin: the last two of the first of three words.
TYPED_DATA: constant(uint256) = 6_401
TYPED_DATA_AT: constant(uint256) = 30
TYPED_DATA_BYTES: constant(uint256) = 66
DOMAIN_TYPE_HASH: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
ORDER_V1_TYPE_HASH: constant(bytes32) = keccak256(
    "Order(uint256 salt,address maker,address signer,address taker,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint256 expiration,uint256 nonce,uint256 feeRateBps,uint8 side,uint8 signatureType)"
)
ORDER_V2_TYPE_HASH: constant(bytes32) = keccak256(
    "Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)"
)

CHAIN_ID: immutable(uint256)
PROFILE_COUNT: immutable(uint256)
SEPARATORS: immutable(bytes32[PROFILES_MAX])
# The domain of the first profile, as ERC-5267 describes one.
NAME: immutable(String[NAME_BYTES_MAX])
VERSION: immutable(String[VERSION_BYTES_MAX])
VERIFYING_CONTRACT: immutable(address)
# A bit for each profile whose struct is v2.
V2_PROFILES: immutable(uint256)


@deploy
def __init__(
    names: DynArray[String[NAME_BYTES_MAX], PROFILES_MAX],
    versions: DynArray[String[VERSION_BYTES_MAX], PROFILES_MAX],
    verifyingContracts: DynArray[address, PROFILES_MAX],
    structVersions: DynArray[uint256, PROFILES_MAX],
):
    count: uint256 = len(names)
    if count == 0:
        raw_revert(method_id("NoProfiles()"))
    if len(versions) != count or len(verifyingContracts) != count or len(structVersions) != count:
        raw_revert(method_id("MismatchedArrayLengths()"))
    separators: bytes32[PROFILES_MAX] = empty(bytes32[PROFILES_MAX])
    v2_profiles: uint256 = 0
    for i: uint256 in range(count, bound=PROFILES_MAX):
        if structVersions[i] != V1 and structVersions[i] != V2:
            raw_revert(method_id("InvalidProfile()"))
        verifying: address = verifyingContracts[i]
        if verifying == empty(address):
            verifying = self
        if structVersions[i] == V2:
            v2_profiles |= 1 << i
        separators[i] = keccak256(
            abi_encode(
                DOMAIN_TYPE_HASH,
                keccak256(names[i]),
                keccak256(versions[i]),
                chain.id,
                verifying,
            )
        )
    CHAIN_ID = chain.id
    PROFILE_COUNT = count
    SEPARATORS = separators
    V2_PROFILES = v2_profiles
    NAME = names[0]
    VERSION = versions[0]
    VERIFYING_CONTRACT = verifyingContracts[0] if verifyingContracts[0] != empty(address) else self


@external
@view
def profileCount() -> uint256:
    """
    @notice How many profiles there are; they are numbered from zero.
    @return The number
    """
    return PROFILE_COUNT


@external
@view
def domainSeparator(profile: uint256 = 0) -> bytes32:
    """
    @notice The EIP-712 domain separator of a profile.
    @param profile Its number; without one, the first
    @return The separator
    """
    self._check_profile(profile)
    return SEPARATORS[profile]


@external
@view
def eip712Domain() -> (
    bytes1,
    String[NAME_BYTES_MAX],
    String[VERSION_BYTES_MAX],
    uint256,
    address,
    bytes32,
    DynArray[uint256, 1],
):
    """
    @notice The EIP-712 domain of the first profile, as ERC-5267 describes it.
    @return The fields that it has, as bits; name, version, chain id and verifying contract; the salt
            and the extensions, which it has not
    """
    return (
        DOMAIN_FIELDS,
        NAME,
        VERSION,
        CHAIN_ID,
        VERIFYING_CONTRACT,
        empty(bytes32),
        empty(DynArray[uint256, 1]),
    )


@external
@view
def structVersion(profile: uint256) -> uint256:
    """
    @notice The order struct of a profile.
    @param profile Its number
    @return 1 or 2
    """
    self._check_profile(profile)
    return V2 if V2_PROFILES & (1 << profile) != 0 else V1


@external
@view
def hashOrder(order: orders.Order) -> bytes32:
    """
    @notice The order's hash, which is its identity.
    @param order The order; its signature may be empty
    @return Its EIP-712 digest under its profile
    """
    return self._order_hash(orders._fields(order))


@internal
@view
def _check_profile(profile: uint256):
    if profile >= PROFILE_COUNT:
        raw_revert(method_id("InvalidProfile()"))


@internal
@view
def _is_v1(profile: uint8) -> bool:
    return V2_PROFILES & (1 << convert(profile, uint256)) == 0


@internal
@view
def _order_hash(order: orders.Fields) -> bytes32:
    """
    @dev Refuses an order with a value in a field that its struct does not sign.
    """
    profile: uint256 = convert(order.profile, uint256)
    self._check_profile(profile)
    if V2_PROFILES & (1 << profile) == 0:
        if (
            order.timestamp
            | convert(order.metadata, uint256)
            | convert(order.builder, uint256)
            != 0
        ):
            raw_revert(method_id("UnsignedField()"))
        return self._digest(
            profile,
            keccak256(
                abi_encode(
                    ORDER_V1_TYPE_HASH,
                    order.salt,
                    order.maker,
                    order.signer,
                    order.taker,
                    order.tokenId,
                    order.makerAmount,
                    order.takerAmount,
                    order.expiration,
                    order.nonce,
                    order.feeRateBps,
                    order.side,
                    order.signatureType,
                )
            ),
        )
    if (
        convert(order.taker, uint256)
        | order.expiration
        | order.nonce
        | order.feeRateBps
        != 0
    ):
        raw_revert(method_id("UnsignedField()"))
    return self._digest(
        profile,
        keccak256(
            abi_encode(
                ORDER_V2_TYPE_HASH,
                order.salt,
                order.maker,
                order.signer,
                order.tokenId,
                order.makerAmount,
                order.takerAmount,
                order.side,
                order.signatureType,
                order.timestamp,
                order.metadata,
                order.builder,
            )
        ),
    )


@internal
@view
def _digest(profile: uint256, struct_hash: bytes32) -> bytes32:
    """
    @dev The hash of an order by that of its struct, whose profile was checked.
    """
    return keccak256(
        slice(
            abi_encode(TYPED_DATA, SEPARATORS[profile], struct_hash), TYPED_DATA_AT, TYPED_DATA_BYTES
        )
    )
