"""Decode the raw logs of our contracts.

Any account may emit a log of any form. So a log is decoded only when it comes from one of our
contracts, has a signature of that contract, and matches its schema exactly. Everything else is
None: it is irrelevant or hostile, and never an error.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from foretell.domain.contracts import exchange_logs, logs, neg_risk_logs, oracle_logs
from foretell.domain.contracts.log_schemas import LogSchema, by_topic, fixed_schema, list_schema
from foretell.domain.contracts.log_words import (
    WORD,
    LogWords,
    Topics,
    Words,
    address_in,
    bytes32_in,
    integer_in,
    one_of,
    token_in,
    topic_address,
    topic_bytes32,
    topic_integer,
    topic_signed,
)
from foretell.domain.contracts.logs import ChainLog, ContractKind
from foretell.domain.values.hexadecimal import Address, Bytes32


def decode_log(kind: ContractKind, topics: Sequence[str], data: str) -> ChainLog | None:
    """Return the log of a contract of this kind, or None when it matches no schema."""
    return decode_with(_SCHEMAS[kind], topics, data)


def schemas_of(kind: ContractKind) -> Mapping[str, LogSchema]:
    """Return the schemas of the logs that a contract of this kind may emit, by first topic."""
    return _SCHEMAS[kind]


def decode_with(
    schemas: Mapping[str, LogSchema], topics: Sequence[str], data: str
) -> ChainLog | None:
    """Return the log, or None when it matches none of these schemas."""
    if not topics:
        return None
    schema = schemas.get(topics[0]) or schemas.get(topics[0].lower())
    if schema is None:
        return None
    try:
        return schema(topics, data)
    except ValueError:
        return None


def topics_of(kind: ContractKind) -> frozenset[str]:
    """Return the first topics of the logs that a contract of this kind may emit."""
    return frozenset(_SCHEMAS[kind])


def _collateral_transferred(topics: Topics, words: Words) -> ChainLog:
    _, sender, receiver = topics
    (units,) = words
    return logs.CollateralTransferred(
        topic_address(sender), topic_address(receiver), integer_in(units)
    )


def _collateral_approved(topics: Topics, words: Words) -> ChainLog:
    _, owner, spender = topics
    (units,) = words
    return logs.CollateralApproved(topic_address(owner), topic_address(spender), integer_in(units))


def _token_transferred(topics: Topics, words: Words) -> ChainLog:
    _, operator, sender, receiver = topics
    token, units = words
    return logs.TokensTransferred(
        topic_address(operator),
        topic_address(sender),
        topic_address(receiver),
        (token_in(token),),
        (integer_in(units),),
    )


def _tokens_transferred(topics: Topics, words: LogWords) -> ChainLog:
    _, operator, sender, receiver = topics
    token_ids = words.words(0, 2)
    amounts = words.integers(1, 3 + len(token_ids))
    words.check_size((4 + len(token_ids) + len(amounts)) * WORD)
    if len(token_ids) != len(amounts):
        raise ValueError("lists of different lengths")
    return logs.TokensTransferred(
        topic_address(operator),
        topic_address(sender),
        topic_address(receiver),
        tuple(map(token_in, token_ids)),
        amounts,
    )


def _tokens_approved(topics: Topics, words: Words) -> ChainLog:
    _, owner, operator = topics
    (is_approved,) = words
    return logs.TokensApproved(
        topic_address(owner), topic_address(operator), one_of(integer_in(is_approved), 2) == 1
    )


def _condition_prepared(topics: Topics, words: Words) -> ChainLog:
    _, condition, oracle, question = topics
    (slots,) = words
    return logs.ConditionPrepared(
        topic_bytes32(condition), topic_address(oracle), topic_bytes32(question), integer_in(slots)
    )


def _condition_resolved(topics: Topics, words: LogWords) -> ChainLog:
    _, condition, oracle, question = topics
    numerators = words.integers(1, 2)
    words.check_size((3 + len(numerators)) * WORD)
    if words.integer(0) != len(numerators):
        raise ValueError("not a payout for each slot")
    return logs.ConditionResolved(
        topic_bytes32(condition), topic_address(oracle), topic_bytes32(question), numerators
    )


def _position_split(topics: Topics, words: LogWords) -> ChainLog:
    return logs.PositionSplit(*_partition(topics, words))


def _positions_merged(topics: Topics, words: LogWords) -> ChainLog:
    return logs.PositionsMerged(*_partition(topics, words))


def _partition(
    topics: Topics, words: LogWords
) -> tuple[Address, Address, Bytes32, Bytes32, tuple[int, ...], int]:
    """Return the fields of a log of a partition: those of a split are those of a merge."""
    _, holder, parent, condition = topics
    partition = words.integers(1, 3)
    words.check_size((4 + len(partition)) * WORD)
    return (
        topic_address(holder),
        address_in(words.word(0)),
        topic_bytes32(parent),
        topic_bytes32(condition),
        partition,
        words.integer(2),
    )


def _payout_redeemed(topics: Topics, words: LogWords) -> ChainLog:
    _, holder, collateral, parent = topics
    index_sets = words.integers(1, 3)
    words.check_size((4 + len(index_sets)) * WORD)
    return logs.PayoutRedeemed(
        topic_address(holder),
        topic_address(collateral),
        topic_bytes32(parent),
        bytes32_in(words.word(0)),
        index_sets,
        words.integer(2),
    )


def _question_initialized(topics: Topics, words: LogWords) -> ChainLog:
    _, question, asked_at_s, creator = topics
    text = words.text(0, 4)
    words.check_size((5 - -len(text) // WORD) * WORD)
    return logs.QuestionInitialized(
        topic_bytes32(question),
        topic_integer(asked_at_s),
        topic_address(creator),
        text,
        address_in(words.word(1)),
        words.integer(2),
        words.integer(3),
    )


def _question_resolved(topics: Topics, words: LogWords) -> ChainLog:
    _, question, price = topics
    payouts = words.integers(0, 1)
    words.check_size((2 + len(payouts)) * WORD)
    return logs.QuestionResolved(topic_bytes32(question), topic_signed(price), payouts)


def _creator_recorded(topics: Topics, _words: Words) -> ChainLog:
    _, condition, creator, adapter = topics
    return logs.CreatorRecorded(
        topic_bytes32(condition), topic_address(creator), topic_address(adapter)
    )


def _metadata_set(topics: Topics, words: LogWords) -> ChainLog:
    _, condition, creator = topics
    text = words.text(0, 1)
    words.check_size((2 - -len(text) // WORD) * WORD)
    return logs.MetadataSet(topic_bytes32(condition), topic_address(creator), text.decode())


def _safe_created(_topics: Topics, words: Words) -> ChainLog:
    safe, owner = words
    return logs.SafeCreated(address_in(safe), address_in(owner))


def _safe_succeeded(_topics: Topics, words: Words) -> ChainLog:
    safe_tx_hash, _ = words
    return logs.SafeExecuted(bytes32_in(safe_tx_hash), is_success=True)


def _safe_failed(_topics: Topics, words: Words) -> ChainLog:
    safe_tx_hash, _ = words
    return logs.SafeExecuted(bytes32_in(safe_tx_hash), is_success=False)


_SCHEMAS: Final[Mapping[ContractKind, Mapping[str, LogSchema]]] = MappingProxyType(
    {
        ContractKind.COLLATERAL: by_topic(
            {
                "Transfer(address,address,uint256)": fixed_schema(3, 1, _collateral_transferred),
                "Approval(address,address,uint256)": fixed_schema(3, 1, _collateral_approved),
            }
        ),
        ContractKind.CONDITIONAL_TOKENS: by_topic(
            {
                "TransferSingle(address,address,address,uint256,uint256)": fixed_schema(
                    4, 2, _token_transferred
                ),
                "TransferBatch(address,address,address,uint256[],uint256[])": list_schema(
                    4, _tokens_transferred
                ),
                "ApprovalForAll(address,address,bool)": fixed_schema(3, 1, _tokens_approved),
                "ConditionPreparation(bytes32,address,bytes32,uint256)": fixed_schema(
                    4, 1, _condition_prepared
                ),
                "ConditionResolution(bytes32,address,bytes32,uint256,uint256[])": list_schema(
                    4, _condition_resolved
                ),
                "PositionSplit(address,address,bytes32,bytes32,uint256[],uint256)": list_schema(
                    4, _position_split
                ),
                "PositionsMerge(address,address,bytes32,bytes32,uint256[],uint256)": list_schema(
                    4, _positions_merged
                ),
                "PayoutRedemption(address,address,bytes32,bytes32,uint256[],uint256)": list_schema(
                    4, _payout_redeemed
                ),
            }
        ),
        ContractKind.EXCHANGE: exchange_logs.SCHEMAS,
        ContractKind.RESOLUTION_ADAPTER: by_topic(
            {
                "QuestionInitialized(bytes32,uint256,address,bytes,address,uint256,uint256)": (
                    list_schema(4, _question_initialized)
                ),
                "QuestionResolved(bytes32,int256,uint256[])": list_schema(3, _question_resolved),
            }
        ),
        ContractKind.MARKET_REGISTRY: by_topic(
            {
                "CreatorRecorded(bytes32,address,address)": fixed_schema(4, 0, _creator_recorded),
                "MetadataSet(bytes32,address,string)": list_schema(3, _metadata_set),
            }
        ),
        ContractKind.NEG_RISK_ADAPTER: neg_risk_logs.SCHEMAS,
        ContractKind.OPTIMISTIC_ORACLE: oracle_logs.SCHEMAS,
        ContractKind.SAFE_FACTORY: by_topic(
            {"ProxyCreation(address,address)": fixed_schema(1, 2, _safe_created)}
        ),
        ContractKind.SAFE: by_topic(
            {
                "ExecutionSuccess(bytes32,uint256)": fixed_schema(1, 2, _safe_succeeded),
                "ExecutionFailure(bytes32,uint256)": fixed_schema(1, 2, _safe_failed),
            }
        ),
    }
)
