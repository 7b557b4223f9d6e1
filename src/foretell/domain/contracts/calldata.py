"""Calldata of the contracts: calls that we send, put into plans, or check for clients."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.evm.abi import SELECTOR_BYTES, ContractFunction, contract_function
from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address, Bytes32, word_bytes, word_of
from foretell.domain.values.tokens import FULL_PARTITION, TokenPair

ALLOWANCE_UNITS_MAX: Final = 2**256 - 1

ORDER_TYPE: Final = (
    "(uint256,address,address,address,uint256,uint256,uint256,uint256,uint256,uint256,"
    "uint256,bytes32,bytes32,uint8,uint8,uint8,bytes)"
)

APPROVE: Final = contract_function("approve(address,uint256)", "(bool)")
TRANSFER: Final = contract_function("transfer(address,uint256)", "(bool)")
MINT: Final = contract_function("mint(address,uint256)")

SET_APPROVAL_FOR_ALL: Final = contract_function("setApprovalForAll(address,bool)")
SAFE_TRANSFER_FROM: Final = contract_function(
    "safeTransferFrom(address,address,uint256,uint256,bytes)"
)
SPLIT_POSITION: Final = contract_function(
    "splitPosition(address,bytes32,bytes32,uint256[],uint256)"
)
MERGE_POSITIONS: Final = contract_function(
    "mergePositions(address,bytes32,bytes32,uint256[],uint256)"
)
REDEEM_POSITIONS: Final = contract_function("redeemPositions(address,bytes32,bytes32,uint256[])")

INITIALIZE: Final = contract_function(
    "initialize(bytes,address,uint256,uint256,uint256)", "(bytes32)"
)
PROPOSE_AND_RESOLVE: Final = contract_function(
    "proposeAndResolve(address,bytes32,bytes32,uint256,bytes,int256)", "(uint256)"
)
SET_METADATA: Final = contract_function("setMetadata(bytes32,string)")
REGISTER_WHITELIST: Final = contract_function("registerWhitelist(address)")
ADD_ADAPTER: Final = contract_function("addAdapter(address)")

REGISTER_TOKEN: Final = contract_function("registerToken(uint256,uint256,bytes32)")
MATCH_ORDERS: Final = contract_function(
    f"matchOrders({ORDER_TYPE},{ORDER_TYPE}[],uint256,uint256[],uint256,uint256[])"
)
CANCEL_ORDER: Final = contract_function(f"cancelOrder({ORDER_TYPE})")
CANCEL_ORDERS: Final = contract_function(f"cancelOrders({ORDER_TYPE}[])")
VALIDATE_ORDER: Final = contract_function(f"validateOrder({ORDER_TYPE})")
INCREMENT_NONCE: Final = contract_function("incrementNonce()")
CLAIM_TOKENS: Final = contract_function("claimTokens(uint256,address)")
ADD_OPERATOR: Final = contract_function("addOperator(address)")
IS_OPERATOR: Final = contract_function("isOperator(address)", "(bool)")
ADD_REGISTRAR: Final = contract_function("addRegistrar(address)")

CREATE_PROXY: Final = contract_function(
    "createProxy(address,uint256,address,(uint8,bytes32,bytes32))"
)
EXEC_TRANSACTION: Final = contract_function(
    "execTransaction(address,uint256,bytes,uint8,uint256,uint256,uint256,address,address,bytes)",
    "(bool)",
)
MULTI_SEND: Final = contract_function("multiSend(bytes)")

YES_OR_NO_QUERY: Final = b"YES_OR_NO_QUERY".ljust(32, b"\0")
PRICE_YES: Final = 10**18
PRICE_NO: Final = 0
PRICE_UNKNOWN: Final = 5 * 10**17

_NO_PARENT: Final = bytes(32)
_ZERO_WORD: Final = bytes(32)


@dataclass(frozen=True, slots=True)
class Approve:
    """A collateral allowance for a spender."""

    spender: Address
    amount_units: int

    def encode(self) -> bytes:
        """Return the calldata."""
        return APPROVE.encode(self.spender, self.amount_units)


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer of collateral."""

    receiver: Address
    amount_units: int

    def encode(self) -> bytes:
        """Return the calldata."""
        return TRANSFER.encode(self.receiver, self.amount_units)


@dataclass(frozen=True, slots=True)
class SetApprovalForAll:
    """An operator's approval for all outcome tokens of an owner, or its withdrawal."""

    operator: Address
    is_approved: bool

    def encode(self) -> bytes:
        """Return the calldata."""
        return SET_APPROVAL_FOR_ALL.encode(self.operator, self.is_approved)


@dataclass(frozen=True, slots=True)
class SplitPosition:
    """A split of collateral into complete sets."""

    collateral: Address
    condition_id: Bytes32
    amount_units: int
    partition: tuple[int, ...] = FULL_PARTITION

    def encode(self) -> bytes:
        """Return the calldata."""
        return _encode_sets(SPLIT_POSITION, self)


@dataclass(frozen=True, slots=True)
class MergePositions:
    """A merge of complete sets into collateral."""

    collateral: Address
    condition_id: Bytes32
    amount_units: int
    partition: tuple[int, ...] = FULL_PARTITION

    def encode(self) -> bytes:
        """Return the calldata."""
        return _encode_sets(MERGE_POSITIONS, self)


@dataclass(frozen=True, slots=True)
class RedeemPositions:
    """A redemption of all that the caller holds of some outcomes."""

    collateral: Address
    condition_id: Bytes32
    index_sets: tuple[int, ...] = FULL_PARTITION

    def encode(self) -> bytes:
        """Return the calldata."""
        return REDEEM_POSITIONS.encode(
            self.collateral, _NO_PARENT, word_bytes(self.condition_id), self.index_sets
        )


ClientCall = (
    Approve | Transfer | SetApprovalForAll | SplitPosition | MergePositions | RedeemPositions
)
"""A call of a client's wallet whose arguments are checked."""


def decode_call(calldata: bytes) -> ClientCall:
    """Return a client's call, or refuse one that is unknown or malformed."""
    decoder = _DECODERS.get(calldata[:SELECTOR_BYTES])
    if decoder is None:
        raise MalformedCalldata("a call of a function that is served here")
    return decoder(calldata)


def _decode_approve(calldata: bytes) -> Approve:
    spender, amount_units = APPROVE.decode(calldata)
    return Approve(Address(spender), amount_units)


def _decode_transfer(calldata: bytes) -> Transfer:
    receiver, amount_units = TRANSFER.decode(calldata)
    return Transfer(Address(receiver), amount_units)


def _decode_set_approval(calldata: bytes) -> SetApprovalForAll:
    operator, is_approved = SET_APPROVAL_FOR_ALL.decode(calldata)
    return SetApprovalForAll(Address(operator), is_approved)


def _decode_split(calldata: bytes) -> SplitPosition:
    return SplitPosition(*_decode_sets(SPLIT_POSITION, calldata))


def _decode_merge(calldata: bytes) -> MergePositions:
    return MergePositions(*_decode_sets(MERGE_POSITIONS, calldata))


def _decode_redeem(calldata: bytes) -> RedeemPositions:
    collateral, parent, condition, index_sets = REDEEM_POSITIONS.decode(calldata)
    _check_parent(parent)
    return RedeemPositions(Address(collateral), word_of(condition), index_sets)


_DECODERS: Final[Mapping[bytes, Callable[[bytes], ClientCall]]] = MappingProxyType(
    {
        APPROVE.selector: _decode_approve,
        TRANSFER.selector: _decode_transfer,
        SET_APPROVAL_FOR_ALL.selector: _decode_set_approval,
        SPLIT_POSITION.selector: _decode_split,
        MERGE_POSITIONS.selector: _decode_merge,
        REDEEM_POSITIONS.selector: _decode_redeem,
    }
)


def _encode_sets(function: ContractFunction, sets: SplitPosition | MergePositions) -> bytes:
    condition = word_bytes(sets.condition_id)
    return function.encode(
        sets.collateral, _NO_PARENT, condition, sets.partition, sets.amount_units
    )


def _decode_sets(
    function: ContractFunction, calldata: bytes
) -> tuple[Address, Bytes32, int, tuple[int, ...]]:
    collateral, parent, condition, partition, amount_units = function.decode(calldata)
    _check_parent(parent)
    return Address(collateral), word_of(condition), amount_units, partition


def _check_parent(parent: bytes) -> None:
    if parent != _NO_PARENT:
        raise MalformedCalldata("a call without a parent collection")


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The arguments of a question; the direct stack requires the last three to be zero."""

    ancillary_data: bytes
    reward_token: Address
    reward_units: int = 0
    bond_units: int = 0
    liveness_s: int = 0

    def encode(self) -> bytes:
        """Return the calldata that asks the question."""
        return INITIALIZE.encode(
            self.ancillary_data,
            self.reward_token,
            self.reward_units,
            self.bond_units,
            self.liveness_s,
        )


@dataclass(frozen=True, slots=True)
class Resolution:
    """A proposer's answer to a question, with the question's time and text."""

    adapter: Address
    question_id: Bytes32
    asked_at_s: int
    ancillary_data: bytes
    price: int

    def encode(self) -> bytes:
        """Return the calldata that answers the question, which is final."""
        return PROPOSE_AND_RESOLVE.encode(
            self.adapter,
            word_bytes(self.question_id),
            YES_OR_NO_QUERY,
            self.asked_at_s,
            self.ancillary_data,
            self.price,
        )


@dataclass(frozen=True, slots=True)
class OrderFill:
    """An order, the part of its maker amount that is filled, and the fee on what it receives."""

    order: SignedOrder
    making_units: int
    fee_units: int = 0


def encode_match_orders(taker: OrderFill, makers: Sequence[OrderFill]) -> bytes:
    """Return the calldata that settles a taker order with maker orders."""
    return MATCH_ORDERS.encode(
        order_words(taker.order),
        [order_words(maker.order) for maker in makers],
        taker.making_units,
        [maker.making_units for maker in makers],
        taker.fee_units,
        [maker.fee_units for maker in makers],
    )


def order_words(order: SignedOrder) -> tuple[object, ...]:
    """Return an order as the exchange's tuple; fields of the other order struct are zero.

    Only version 1 signs an expiration. A contract wallet is its own signer for the exchange.
    """
    added = order.v2
    return (
        int(order.salt),
        order.maker,
        order.maker if order.signature_type is SignatureType.CONTRACT else order.signer,
        order.taker,
        int(order.token_id),
        order.maker_amount,
        order.taker_amount,
        order.expiration_s if added is None else 0,
        order.nonce,
        order.fee_rate_bps,
        0 if added is None else added.timestamp_ms,
        _ZERO_WORD if added is None else word_bytes(added.metadata),
        _ZERO_WORD if added is None else word_bytes(added.builder),
        int(order.side),
        int(order.signature_type),
        order.profile,
        order.signature,
    )


def encode_validate_order(order: SignedOrder) -> bytes:
    """Return the calldata of the view that refuses an order that cannot be filled."""
    return VALIDATE_ORDER.encode(order_words(order))


def encode_register_token(pair: TokenPair, condition_id: Bytes32) -> bytes:
    """Return the calldata that registers a condition's tokens for trading."""
    return REGISTER_TOKEN.encode(pair.yes, pair.no, word_bytes(condition_id))


def encode_set_metadata(condition_id: Bytes32, metadata_id: str) -> bytes:
    """Return the calldata by which a creator sets a market's metadata."""
    return SET_METADATA.encode(word_bytes(condition_id), metadata_id)
