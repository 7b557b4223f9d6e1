"""The allow-list of relayed calls, by contract, function and decoded arguments.

The relayer pays for gas, and users sign what programs show them. So it sends only calls that
trading here needs, and none that gives another account rights over a wallet's assets.
"""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.domain.contracts.calldata import (
    CANCEL_ORDER,
    CANCEL_ORDERS,
    CLAIM_TOKENS,
    INCREMENT_NONCE,
    MERGE_POSITIONS,
    SPLIT_POSITION,
    Approve,
    ClientCall,
    MergePositions,
    RedeemPositions,
    SetApprovalForAll,
    SplitPosition,
    Transfer,
    decode_call,
)
from foretell.domain.contracts.neg_risk import (
    CONVERT_POSITIONS,
    MERGE_SETS,
    REDEEM_SETS,
    SPLIT_SETS,
    UNWRAP,
)
from foretell.domain.contracts.safe import (
    OPERATION_CALL,
    OPERATION_DELEGATECALL,
    InnerCall,
    decode_multi_send,
)
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.errors.relayer import InvalidField
from foretell.domain.evm.abi import SELECTOR_BYTES, ContractFunction
from foretell.domain.values.hexadecimal import Address

INDEX_SETS_MAX: Final = 16
CANCEL_BYTES_MAX: Final = 32 * 1024
"""Twice the size of a call with the exchange's greatest number of orders."""


class ServedCall(enum.StrEnum):
    """The calls that the relayer can send for a wallet."""

    APPROVE = "approve"
    TRANSFER = "transfer"
    SET_APPROVAL_FOR_ALL = "setApprovalForAll"
    SPLIT_POSITION = "splitPosition"
    MERGE_POSITIONS = "mergePositions"
    REDEEM_POSITIONS = "redeemPositions"
    CONVERT_POSITIONS = "convertPositions"
    UNWRAP = "unwrap"
    CANCEL_ORDERS = "cancelOrders"
    """Cancels of the exchange: one order, several, or all by a new nonce."""
    CLAIM_TOKENS = "claimTokens"


class EventCall(NamedTuple):
    """A call of a contract of neg-risk events."""

    served: ServedCall


ReadCall = ClientCall | EventCall | None
"""A call that was read; None stands for one of an exchange."""


class EventTargets(NamedTuple):
    """The contracts of neg-risk events that a wallet calls."""

    exchange: Address
    adapter: Address
    wrapped_collateral: Address


@dataclass(frozen=True, slots=True)
class CallRules:
    """The contracts that may be called, and the calls that the operator allows."""

    collateral: Address
    conditional_tokens: Address
    exchange: Address
    multi_send: Address
    calls: Collection[ServedCall] = frozenset(ServedCall)
    events: EventTargets | None = None

    @property
    def exchanges(self) -> frozenset[Address]:
        """The exchanges at which orders can be cancelled."""
        events = () if self.events is None else (self.events.exchange,)
        return frozenset({self.exchange, *events})

    @property
    def operators(self) -> frozenset[Address]:
        """The contracts that a wallet may approve for its tokens."""
        events = () if self.events is None else (self.events.adapter,)
        return self.exchanges | frozenset(events)

    @property
    def collaterals(self) -> frozenset[Address]:
        """The collaterals of positions."""
        events = () if self.events is None else (self.events.wrapped_collateral,)
        return frozenset({self.collateral, *events})

    def read_calls(self, to: Address, operation: int, calldata: bytes) -> tuple[ReadCall, ...]:
        """Return the calls of a wallet's transaction, or refuse it.

        Only MultiSend may be delegated to, with plain calls, each checked like a single one.
        """
        if operation == OPERATION_CALL:
            return (self._read_call(InnerCall(to, calldata)),)
        if operation != OPERATION_DELEGATECALL or to != self.multi_send:
            raise InvalidField("to", f"{self.multi_send} where operation is 1")
        calls = decode_multi_send(calldata)
        if not calls:
            raise MalformedCalldata("a bundle of at least one call")
        return tuple(self._read_call(call) for call in calls)

    def _read_call(self, call: InnerCall) -> ReadCall:
        if call.value_wei:
            raise MalformedCalldata("calls with the value 0")
        if call.to in self.exchanges:
            self._check_exchange_call(call.calldata)
            return None
        if call.to in self._served_by_target:
            return self._read_event_call(call)
        wanted = {
            self.collateral: (Approve, Transfer),
            self.conditional_tokens: (
                SetApprovalForAll,
                SplitPosition,
                MergePositions,
                RedeemPositions,
            ),
        }.get(call.to)
        if wanted is None:
            raise InvalidField(
                "to", "the collateral, Conditional Tokens, an exchange or a contract of events"
            )
        decoded = decode_call(call.calldata)
        if not isinstance(decoded, wanted):
            raise MalformedCalldata(f"a call of a function that {call.to} has")
        self._check_allowed(_SERVED[type(decoded)])
        _CHECKS[type(decoded)](self, decoded)
        return decoded

    def _check_exchange_call(self, calldata: bytes) -> None:
        if calldata[:SELECTOR_BYTES] == CLAIM_TOKENS.selector:
            self._check_allowed(ServedCall.CLAIM_TOKENS)
            CLAIM_TOKENS.decode(calldata)
            return
        self._check_allowed(ServedCall.CANCEL_ORDERS)
        if len(calldata) > CANCEL_BYTES_MAX:
            raise MalformedCalldata(f"at most {CANCEL_BYTES_MAX} bytes in a cancel")
        for function in (CANCEL_ORDER, CANCEL_ORDERS, INCREMENT_NONCE):
            if calldata[:SELECTOR_BYTES] == function.selector:
                function.decode(calldata)
                return
        raise MalformedCalldata(
            "a call of cancelOrder, cancelOrders, incrementNonce or claimTokens at an exchange"
        )

    @property
    def _served_by_target(self) -> Mapping[Address, Sequence[tuple[ContractFunction, ServedCall]]]:
        if self.events is None:
            return {}
        return {
            self.events.adapter: _ADAPTER_CALLS,
            self.events.wrapped_collateral: _WRAPPED_CALLS,
        }

    def _read_event_call(self, call: InnerCall) -> EventCall:
        for function, served in self._served_by_target[call.to]:
            if call.calldata[:SELECTOR_BYTES] == function.selector:
                self._check_allowed(served)
                function.decode(call.calldata)
                return EventCall(served)
        raise MalformedCalldata("a call of a function that the contracts of events have")

    def _check_allowed(self, call: ServedCall) -> None:
        if call not in self.calls:
            raise MalformedCalldata(f"another call than {call}, which this relayer does not send")


def _check_approve(rules: CallRules, call: ClientCall) -> None:
    assert isinstance(call, Approve)
    spenders = rules.operators | {rules.conditional_tokens}
    if call.amount_units and call.spender not in spenders:
        raise MalformedCalldata(f"an approval of one of {', '.join(sorted(spenders))}")


def _check_operator(rules: CallRules, call: ClientCall) -> None:
    assert isinstance(call, SetApprovalForAll)
    if call.is_approved and call.operator not in rules.operators:
        raise MalformedCalldata(f"an approval of one of {', '.join(sorted(rules.operators))}")


def _check_transfer(_: CallRules, call: ClientCall) -> None:
    assert isinstance(call, Transfer)
    if not call.amount_units:
        raise MalformedCalldata("a transfer of more than 0")


def _check_sets(rules: CallRules, call: ClientCall) -> None:
    assert isinstance(call, SplitPosition | MergePositions)
    _check_collateral(rules, call.collateral)
    _check_index_sets(call.partition)
    if not call.amount_units:
        raise MalformedCalldata("a call for more than 0")


def _check_redeem(rules: CallRules, call: ClientCall) -> None:
    assert isinstance(call, RedeemPositions)
    _check_collateral(rules, call.collateral)
    _check_index_sets(call.index_sets)


def _check_collateral(rules: CallRules, collateral: Address) -> None:
    if collateral not in rules.collaterals:
        wanted = " or ".join(sorted(rules.collaterals))
        raise MalformedCalldata(f"a call with the collateral {wanted}")


def _check_index_sets(index_sets: tuple[int, ...]) -> None:
    if not 0 < len(set(index_sets)) == len(index_sets) <= INDEX_SETS_MAX:
        raise MalformedCalldata(f"a call with 1 to {INDEX_SETS_MAX} index sets, all different")


_SERVED: Final[Mapping[type[ClientCall], ServedCall]] = MappingProxyType(
    {
        Approve: ServedCall.APPROVE,
        Transfer: ServedCall.TRANSFER,
        SetApprovalForAll: ServedCall.SET_APPROVAL_FOR_ALL,
        SplitPosition: ServedCall.SPLIT_POSITION,
        MergePositions: ServedCall.MERGE_POSITIONS,
        RedeemPositions: ServedCall.REDEEM_POSITIONS,
    }
)

_ADAPTER_CALLS: Final = (
    (SPLIT_SETS, ServedCall.SPLIT_POSITION),
    (SPLIT_POSITION, ServedCall.SPLIT_POSITION),
    (MERGE_SETS, ServedCall.MERGE_POSITIONS),
    (MERGE_POSITIONS, ServedCall.MERGE_POSITIONS),
    (REDEEM_SETS, ServedCall.REDEEM_POSITIONS),
    (CONVERT_POSITIONS, ServedCall.CONVERT_POSITIONS),
)
_WRAPPED_CALLS: Final = ((UNWRAP, ServedCall.UNWRAP),)

_CHECKS: Final[Mapping[type[ClientCall], Callable[[CallRules, ClientCall], None]]] = (
    MappingProxyType(
        {
            Approve: _check_approve,
            Transfer: _check_transfer,
            SetApprovalForAll: _check_operator,
            SplitPosition: _check_sets,
            MergePositions: _check_sets,
            RedeemPositions: _check_redeem,
        }
    )
)
