"""Decode the raw logs of our contracts.

Any account may emit a log of any form. So a log is decoded only when it comes from one of our
contracts, has a signature of that contract, and matches its schema exactly. Everything else is
None: it is irrelevant or hostile, and never an error.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from foretell.domain.contracts import logs, neg_risk_logs, oracle_logs
from foretell.domain.contracts.log_schemas import LogSchema, by_topic
from foretell.domain.contracts.log_words import (
    WORD,
    LogWords,
    address_in,
    bytes32_in,
    integer_in,
    parse_words,
    signed_in,
)
from foretell.domain.contracts.logs import ChainLog, ContractKind
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Address, Bytes32


def decode_log(kind: ContractKind, topics: Sequence[str], data: str) -> ChainLog | None:
    """Return the log of a contract of this kind, or None when it matches no schema."""
    return decode_with(_SCHEMAS[kind], topics, data)


def schemas_of(kind: ContractKind) -> Mapping[bytes, LogSchema]:
    """Return the schemas of the logs that a contract of this kind may emit, by first topic."""
    return _SCHEMAS[kind]


def decode_with(
    schemas: Mapping[bytes, LogSchema], topics: Sequence[str], data: str
) -> ChainLog | None:
    """Return the log, or None when it matches none of these schemas."""
    try:
        words = parse_words(topics, data)
        schema = schemas.get(words.topics[0]) if words.topics else None
        if schema is None or len(words.topics) != schema.topics:
            return None
        if schema.words is not None:
            words.check_size(schema.words * WORD)
        return schema.decode(words)
    except ValueError:
        return None


def topics_of(kind: ContractKind) -> frozenset[str]:
    """Return the first topics of the logs that a contract of this kind may emit."""
    return frozenset(f"0x{topic.hex()}" for topic in _SCHEMAS[kind])


def _collateral_transferred(words: LogWords) -> ChainLog:
    _, sender, receiver = words.topics
    return logs.CollateralTransferred(address_in(sender), address_in(receiver), words.integer(0))


def _collateral_approved(words: LogWords) -> ChainLog:
    _, owner, spender = words.topics
    return logs.CollateralApproved(address_in(owner), address_in(spender), words.integer(0))


def _token_transferred(words: LogWords) -> ChainLog:
    _, operator, sender, receiver = words.topics
    return logs.TokensTransferred(
        address_in(operator),
        address_in(sender),
        address_in(receiver),
        (str(words.integer(0)),),
        (words.integer(1),),
    )


def _tokens_transferred(words: LogWords) -> ChainLog:
    _, operator, sender, receiver = words.topics
    token_ids = words.integers(0, 2)
    amounts = words.integers(1, 3 + len(token_ids))
    words.check_size((4 + len(token_ids) + len(amounts)) * WORD)
    if len(token_ids) != len(amounts):
        raise ValueError("lists of different lengths")
    return logs.TokensTransferred(
        address_in(operator),
        address_in(sender),
        address_in(receiver),
        tuple(map(str, token_ids)),
        amounts,
    )


def _tokens_approved(words: LogWords) -> ChainLog:
    _, owner, operator = words.topics
    return logs.TokensApproved(
        address_in(owner), address_in(operator), _one_of(words.integer(0), 2) == 1
    )


def _condition_prepared(words: LogWords) -> ChainLog:
    _, condition, oracle, question = words.topics
    return logs.ConditionPrepared(
        bytes32_in(condition), address_in(oracle), bytes32_in(question), words.integer(0)
    )


def _condition_resolved(words: LogWords) -> ChainLog:
    _, condition, oracle, question = words.topics
    numerators = words.integers(1, 2)
    words.check_size((3 + len(numerators)) * WORD)
    if words.integer(0) != len(numerators):
        raise ValueError("not a payout for each slot")
    return logs.ConditionResolved(
        bytes32_in(condition), address_in(oracle), bytes32_in(question), numerators
    )


def _position_split(words: LogWords) -> ChainLog:
    return logs.PositionSplit(*_partition(words))


def _positions_merged(words: LogWords) -> ChainLog:
    return logs.PositionsMerged(*_partition(words))


def _partition(words: LogWords) -> tuple[Address, Address, Bytes32, Bytes32, tuple[int, ...], int]:
    """Return the fields of a log of a partition: those of a split are those of a merge."""
    _, holder, parent, condition = words.topics
    partition = words.integers(1, 3)
    words.check_size((4 + len(partition)) * WORD)
    return (
        address_in(holder),
        address_in(words.word(0)),
        bytes32_in(parent),
        bytes32_in(condition),
        partition,
        words.integer(2),
    )


def _payout_redeemed(words: LogWords) -> ChainLog:
    _, holder, collateral, parent = words.topics
    index_sets = words.integers(1, 3)
    words.check_size((4 + len(index_sets)) * WORD)
    return logs.PayoutRedeemed(
        address_in(holder),
        address_in(collateral),
        bytes32_in(parent),
        bytes32_in(words.word(0)),
        index_sets,
        words.integer(2),
    )


def _order_filled_v1(words: LogWords) -> ChainLog:
    _, order, maker, counterparty = words.topics
    side, token_id = _side_and_token(words.integer(0), words.integer(1))
    size_units, cost_units = _size_and_cost(side, words.integer(2), words.integer(3))
    return logs.OrderFilledLog(
        bytes32_in(order),
        address_in(maker),
        address_in(counterparty),
        side,
        token_id,
        size_units,
        cost_units,
        words.integer(4),
    )


def _order_filled_v2(words: LogWords) -> ChainLog:
    _, order, maker, counterparty = words.topics
    side = Side(_one_of(words.integer(0), 2))
    size_units, cost_units = _size_and_cost(side, words.integer(2), words.integer(3))
    return logs.OrderFilledLog(
        bytes32_in(order),
        address_in(maker),
        address_in(counterparty),
        side,
        str(words.integer(1)),
        size_units,
        cost_units,
        words.integer(4),
        bytes32_in(words.word(5)),
    )


def _orders_matched_v1(words: LogWords) -> ChainLog:
    _, order, maker = words.topics
    side, token_id = _side_and_token(words.integer(0), words.integer(1))
    size_units, cost_units = _size_and_cost(side, words.integer(2), words.integer(3))
    return logs.OrdersMatched(
        bytes32_in(order), address_in(maker), side, token_id, size_units, cost_units
    )


def _orders_matched_v2(words: LogWords) -> ChainLog:
    _, order, maker = words.topics
    side = Side(_one_of(words.integer(0), 2))
    size_units, cost_units = _size_and_cost(side, words.integer(2), words.integer(3))
    return logs.OrdersMatched(
        bytes32_in(order), address_in(maker), side, str(words.integer(1)), size_units, cost_units
    )


def _side_and_token(maker_asset: int, taker_asset: int) -> tuple[Side, str]:
    """Return side and token of a v1 log: exactly one of its assets is 0, the collateral."""
    if bool(maker_asset) is bool(taker_asset):
        raise ValueError("not collateral against a token")
    return (Side.SELL, str(maker_asset)) if maker_asset else (Side.BUY, str(taker_asset))


def _size_and_cost(side: Side, given_units: int, received_units: int) -> tuple[int, int]:
    if side is Side.BUY:
        return received_units, given_units
    return given_units, received_units


def _fee_charged(words: LogWords) -> ChainLog:
    receiver = address_in(words.topics[1])
    return logs.FeeCharged(receiver, str(words.integer(0)), words.integer(1))


def _fee_charged_v2(words: LogWords) -> ChainLog:
    return logs.FeeCharged(address_in(words.topics[1]), None, words.integer(0))


def _order_cancelled(words: LogWords) -> ChainLog:
    return logs.OrderCancelled(bytes32_in(words.topics[1]))


def _nonce_incremented(words: LogWords) -> ChainLog:
    return logs.NonceIncremented(address_in(words.topics[1]), words.integer(0))


def _cancelled_before(words: LogWords) -> ChainLog:
    return logs.OrdersCancelledBefore(address_in(words.topics[1]), words.integer(0))


def _owner_signing_changed(words: LogWords) -> ChainLog:
    is_allowed = _one_of(words.integer(0), 2) == 1
    return logs.OwnerSigningChanged(address_in(words.topics[1]), is_allowed)


def _token_registered(words: LogWords) -> ChainLog:
    _, token, complement, condition = words.topics
    return logs.TokenRegistered(
        str(integer_in(token)), str(integer_in(complement)), bytes32_in(condition)
    )


def _question_initialized(words: LogWords) -> ChainLog:
    _, question, asked_at_s, creator = words.topics
    text = words.text(0, 4)
    words.check_size((5 - -len(text) // WORD) * WORD)
    return logs.QuestionInitialized(
        bytes32_in(question),
        integer_in(asked_at_s),
        address_in(creator),
        text,
        address_in(words.word(1)),
        words.integer(2),
        words.integer(3),
    )


def _question_resolved(words: LogWords) -> ChainLog:
    _, question, price = words.topics
    payouts = words.integers(0, 1)
    words.check_size((2 + len(payouts)) * WORD)
    return logs.QuestionResolved(bytes32_in(question), signed_in(price), payouts)


def _creator_recorded(words: LogWords) -> ChainLog:
    _, condition, creator, adapter = words.topics
    return logs.CreatorRecorded(bytes32_in(condition), address_in(creator), address_in(adapter))


def _metadata_set(words: LogWords) -> ChainLog:
    _, condition, creator = words.topics
    text = words.text(0, 1)
    words.check_size((2 - -len(text) // WORD) * WORD)
    return logs.MetadataSet(bytes32_in(condition), address_in(creator), text.decode())


def _safe_created(words: LogWords) -> ChainLog:
    return logs.SafeCreated(address_in(words.word(0)), address_in(words.word(1)))


def _safe_succeeded(words: LogWords) -> ChainLog:
    return logs.SafeExecuted(bytes32_in(words.word(0)), is_success=True)


def _safe_failed(words: LogWords) -> ChainLog:
    return logs.SafeExecuted(bytes32_in(words.word(0)), is_success=False)


def _one_of(value: int, count: int) -> int:
    if value >= count:
        raise ValueError("no such value")
    return value


_SCHEMAS: Final[Mapping[ContractKind, Mapping[bytes, LogSchema]]] = MappingProxyType(
    {
        ContractKind.COLLATERAL: by_topic(
            {
                "Transfer(address,address,uint256)": LogSchema(3, 1, _collateral_transferred),
                "Approval(address,address,uint256)": LogSchema(3, 1, _collateral_approved),
            }
        ),
        ContractKind.CONDITIONAL_TOKENS: by_topic(
            {
                "TransferSingle(address,address,address,uint256,uint256)": LogSchema(
                    4, 2, _token_transferred
                ),
                "TransferBatch(address,address,address,uint256[],uint256[])": LogSchema(
                    4, None, _tokens_transferred
                ),
                "ApprovalForAll(address,address,bool)": LogSchema(3, 1, _tokens_approved),
                "ConditionPreparation(bytes32,address,bytes32,uint256)": LogSchema(
                    4, 1, _condition_prepared
                ),
                "ConditionResolution(bytes32,address,bytes32,uint256,uint256[])": LogSchema(
                    4, None, _condition_resolved
                ),
                "PositionSplit(address,address,bytes32,bytes32,uint256[],uint256)": LogSchema(
                    4, None, _position_split
                ),
                "PositionsMerge(address,address,bytes32,bytes32,uint256[],uint256)": LogSchema(
                    4, None, _positions_merged
                ),
                "PayoutRedemption(address,address,bytes32,bytes32,uint256[],uint256)": LogSchema(
                    4, None, _payout_redeemed
                ),
            }
        ),
        ContractKind.EXCHANGE: by_topic(
            {
                "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)": (
                    LogSchema(4, 5, _order_filled_v1)
                ),
                "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,"
                "bytes32,bytes32)": LogSchema(4, 7, _order_filled_v2),
                "OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)": LogSchema(
                    3, 4, _orders_matched_v1
                ),
                "OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)": LogSchema(
                    3, 4, _orders_matched_v2
                ),
                "FeeCharged(address,uint256,uint256)": LogSchema(2, 2, _fee_charged),
                "FeeCharged(address,uint256)": LogSchema(2, 1, _fee_charged_v2),
                "OrderCancelled(bytes32)": LogSchema(2, 0, _order_cancelled),
                "NonceIncremented(address,uint256)": LogSchema(2, 1, _nonce_incremented),
                "OrdersCancelledBefore(address,uint256)": LogSchema(2, 1, _cancelled_before),
                "OwnerSigningChanged(address,bool)": LogSchema(2, 1, _owner_signing_changed),
                "TokenRegistered(uint256,uint256,bytes32)": LogSchema(4, 0, _token_registered),
            }
        ),
        ContractKind.RESOLUTION_ADAPTER: by_topic(
            {
                "QuestionInitialized(bytes32,uint256,address,bytes,address,uint256,uint256)": (
                    LogSchema(4, None, _question_initialized)
                ),
                "QuestionResolved(bytes32,int256,uint256[])": LogSchema(
                    3, None, _question_resolved
                ),
            }
        ),
        ContractKind.MARKET_REGISTRY: by_topic(
            {
                "CreatorRecorded(bytes32,address,address)": LogSchema(4, 0, _creator_recorded),
                "MetadataSet(bytes32,address,string)": LogSchema(3, None, _metadata_set),
            }
        ),
        ContractKind.NEG_RISK_ADAPTER: neg_risk_logs.SCHEMAS,
        ContractKind.OPTIMISTIC_ORACLE: oracle_logs.SCHEMAS,
        ContractKind.SAFE_FACTORY: by_topic(
            {"ProxyCreation(address,address)": LogSchema(1, 2, _safe_created)}
        ),
        ContractKind.SAFE: by_topic(
            {
                "ExecutionSuccess(bytes32,uint256)": LogSchema(1, 2, _safe_succeeded),
                "ExecutionFailure(bytes32,uint256)": LogSchema(1, 2, _safe_failed),
            }
        ),
    }
)
