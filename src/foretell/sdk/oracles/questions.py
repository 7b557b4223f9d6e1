"""The question of a market on the chain: which stack was asked, when, and in which words."""

from typing import Any, Final, NamedTuple

from foretell.domain.contracts.neg_risk import RESOLVE_QUESTION
from foretell.domain.errors.command import QuestionUnknown
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    parse_address,
    parse_bytes32,
    word_bytes,
)
from foretell.sdk.chain import ChainAccount
from foretell.sdk.contracts import Contracts, StackTerms

_QUESTION: Final = contract_function(
    "getQuestion(bytes32)",
    "((uint256,uint256,uint256,uint256,uint256,bool,bool,bool,bool,address,address,bytes))",
)
_ASKED_AT: Final = 0
_TEXT: Final = 11


class AskedQuestion(NamedTuple):
    """A market's question as its oracle knows it."""

    stack_name: str
    stack: StackTerms
    adapter: Address
    """Who asked: the adapter of markets, or that of events."""
    asked_id: Bytes32
    question_id: Bytes32
    """The operator's id of an event's question; otherwise the same."""
    is_event: bool
    asked_at_s: int
    text: bytes

    def forward(self) -> ContractCall:
        """Return the call by which the operator of an event passes on what its adapter reported."""
        calldata = RESOLVE_QUESTION.encode(word_bytes(self.question_id))
        return ContractCall(parse_address(self.stack.neg_risk_operator), calldata)


async def fetch_question(
    account: ChainAccount, contracts: Contracts, market: dict[str, Any]
) -> AskedQuestion:
    """Return the question of a market as the discovery API lists it, or refuse one that nobody asked."""
    is_event = bool(market.get("negRiskRequestID"))
    asked_id = parse_bytes32(market["negRiskRequestID" if is_event else "questionID"])
    for name, stack in contracts.stacks.items():
        adapter = parse_address(stack.neg_risk_adapter if is_event else stack.adapter)
        found = await account.read(adapter, _QUESTION, word_bytes(asked_id))
        if found[_ASKED_AT]:
            question_id = parse_bytes32(market["questionID"])
            return AskedQuestion(
                name,
                stack,
                adapter,
                asked_id,
                question_id,
                is_event,
                found[_ASKED_AT],
                found[_TEXT],
            )
    raise QuestionUnknown(str(market["conditionId"]))
