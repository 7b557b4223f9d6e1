"""Resolution by the optimistic oracle: propose an answer with a bond, dispute one, and report the last.

Everything is read from the chain each time, so a program that was interrupted asks again and continues.
"""

from enum import IntEnum
from typing import Any, Final, NamedTuple

from foretell.domain.contracts.calldata import (
    PRICE_NO,
    PRICE_UNKNOWN,
    PRICE_YES,
    YES_OR_NO_QUERY,
    Approve,
)
from foretell.domain.contracts.oracle import (
    ARBITER,
    OWED,
    RESOLVE,
    TOO_EARLY,
    WITHDRAW,
    PriceRequest,
)
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.errors.command import NothingToArbitrate, NotOptimistic, OtherArbiter
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import (
    Address,
    checksum_address,
    keccak256,
    parse_address,
    word_bytes,
)
from foretell.sdk.chain import ChainAccount, TxReceipt
from foretell.sdk.contracts import Contracts
from foretell.sdk.http import wait_for
from foretell.sdk.oracles.questions import AskedQuestion, fetch_question

_KEY: Final = "(address,bytes32,uint256,bytes)"
_STATE: Final = contract_function(f"getState{_KEY}", "(uint256)")
_TERMS: Final = (
    "address,address,address,uint256,uint256,uint256,int256,int256,uint256,uint256,uint256,uint256,"
    "bool,bytes32"
)
_REQUEST: Final = contract_function(f"getRequest{_KEY}", f"(({_TERMS},bool))")
_EARLIER_REQUEST: Final = contract_function(f"getRequest{_KEY}", f"(({_TERMS}))")
"""That of oracles which did not yet say whether the arbiter's silence gave the price."""
_ALLOWANCE: Final = contract_function("allowance(address,address)", "(uint256)")
_DISPUTE: Final = contract_function("disputes()", "(bytes32,uint256,bytes,int256)")
"""The part of a log DisputePrice that is not indexed, as a result."""
_DISPUTED: Final = (
    "0x" + keccak256(b"DisputePrice(address,address,address,bytes32,uint256,bytes,int256)").hex()
)
_BOND: Final = 4
_PROPOSED_PRICE: Final = 6
_PRICE: Final = 7
_EXPIRES_AT: Final = 9

ANSWER_BY_PRICE: Final = {PRICE_YES: "first", PRICE_NO: "second", PRICE_UNKNOWN: "half"}
PRICE_BY_ANSWER: Final = {answer: price for price, answer in ANSWER_BY_PRICE.items()}
"""The answers to a question: its first outcome, its second, or one half to each."""
PRICE_BY_DECISION: Final = {**PRICE_BY_ANSWER, "early": TOO_EARLY}
"""The decisions of an arbiter: an answer, or that it is too early for one."""
CHAIN_POLL_S: Final = 2.0
LATE_S: Final = 600.0
"""How much later than the liveness a block may come that ends it."""


class RequestState(IntEnum):
    """The state of a question at the optimistic oracle."""

    REQUESTED = 1
    PROPOSED = 2
    EXPIRED = 3
    DISPUTED = 4
    SETTLED = 6


class QuestionStanding(NamedTuple):
    """Where a question stands."""

    state: RequestState
    answer: str | None
    """The proposed or the settled answer, a key of `PRICE_BY_ANSWER`; None while there is none."""
    bond_units: int
    expires_at_s: int
    """The end of the liveness; 0 before a proposal."""
    asked_at_s: int

    @property
    def is_answered(self) -> bool:
        """Whether anyone can report the answer to the market."""
        return self.state in {RequestState.EXPIRED, RequestState.SETTLED}


class OptimisticResolver:
    """An account that proposes and disputes answers of markets with the stack `alt_moov2`."""

    def __init__(self, account: ChainAccount, contracts: Contracts) -> None:
        self._account = account
        self._contracts = contracts

    async def standing(self, market: dict[str, Any]) -> QuestionStanding:
        """Return where the question of a market stands; markets are rows of the discovery API."""
        return await self._standing(await self._question(market))

    async def propose(self, market: dict[str, Any], answer: str) -> TxReceipt:
        """Propose an answer, a key of `PRICE_BY_ANSWER`, and put the bond at stake."""
        question = await self._question(market)
        calldata = _request(question).propose(PRICE_BY_ANSWER[answer])
        return await self._stake(question, calldata)

    async def dispute(self, market: dict[str, Any]) -> TxReceipt:
        """Dispute the proposed answer with the same bond: the question is asked again, or the arbiter decides."""
        question = await self._question(market)
        return await self._stake(question, _request(question).dispute())

    async def arbitrate(self, market: dict[str, Any], decision: str) -> TxReceipt:
        """Decide a question that was disputed twice, as the oracle's arbiter; it is final.

        The decision is a key of `PRICE_BY_DECISION`. Other accounts are refused, and so are questions that
        nobody has brought before the arbiter.
        """
        question = await self._question(market)
        oracle = parse_address(question.stack.oracle)
        arbiter = parse_address(await self._account.read(oracle, ARBITER))
        if arbiter != self._account.address:
            raise OtherArbiter(checksum_address(arbiter), checksum_address(self._account.address))
        if (await self._standing(question)).state is not RequestState.DISPUTED:
            raise NothingToArbitrate(str(market["conditionId"]))
        calldata = _request(question).arbitrate(PRICE_BY_DECISION[decision])
        return await self._account.call(ContractCall(oracle, calldata))

    async def wait_until_answered(self, market: dict[str, Any], now_s: int) -> QuestionStanding:
        """Return the standing once the liveness has ended, or once somebody has disputed the answer."""

        async def fetch_end() -> QuestionStanding | None:
            found = await self.standing(market)
            return None if found.state is RequestState.PROPOSED else found

        ends_at_s = (await self.standing(market)).expires_at_s
        deadline_s = max(ends_at_s - now_s, 0) + LATE_S
        return await wait_for("the liveness to end", fetch_end, deadline_s, CHAIN_POLL_S)

    async def report(self, market: dict[str, Any]) -> list[TxReceipt]:
        """Report the answer to the market, as any account may; an event's goes on through its operator."""
        question = await self._question(market)
        calls = [ContractCall(question.adapter, RESOLVE.encode(word_bytes(question.asked_id)))]
        if question.is_event:
            calls.append(question.forward())
        return await self._account.call_all(calls)

    async def withdraw(self, market: dict[str, Any], asked_at_s: int | None = None) -> int:
        """Withdraw the bonds and rewards that the account is owed, and return their base units.

        An earlier request whose answer this account proposed or disputed is settled first: it is found in the oracle's
        logs, once the newest request is answered. With its time given, the logs are not read.
        """
        question = await self._question(market)
        oracle = parse_address(question.stack.oracle)
        times_s = await self._disputed_times_s(question) if asked_at_s is None else [asked_at_s]
        for time_s in times_s:
            earlier = _request(question._replace(asked_at_s=time_s))
            await self._account.call(ContractCall(oracle, earlier.settle()))
        units = int(await self._account.read(oracle, OWED, self._account.address))
        if units:
            await self._account.call(ContractCall(oracle, WITHDRAW.encode()))
        return units

    async def _disputed_times_s(self, question: AskedQuestion) -> list[int]:
        """Return the times of earlier requests of a question that can be settled for this account."""
        if not (await self._standing(question)).is_answered:
            return []
        own, requester = _topic(self._account.address), _topic(question.adapter)
        found: set[int] = set()
        for parties in ([own], [None, own]):
            wanted = {
                "address": question.stack.oracle,
                "fromBlock": "earliest",
                "toBlock": "latest",
                "topics": [_DISPUTED, requester, *parties],
            }
            for log in await self._account.rpc.call("eth_getLogs", wanted):
                _, time_s, text, _ = _DISPUTE.decode_result(bytes.fromhex(log["data"][2:]))
                if text == question.text and time_s != question.asked_at_s:
                    found.add(time_s)
        earlier = [(time_s, question._replace(asked_at_s=time_s)) for time_s in sorted(found)]
        return [
            time_s
            for time_s, request in earlier
            if (await self._standing(request)).state is not RequestState.SETTLED
        ]

    async def _question(self, market: dict[str, Any]) -> AskedQuestion:
        question = await fetch_question(self._account, self._contracts, market)
        if question.stack_name != ResolutionType.OPTIMISTIC:
            raise NotOptimistic(str(market["conditionId"]))
        return question

    async def _standing(self, question: AskedQuestion) -> QuestionStanding:
        oracle = parse_address(question.stack.oracle)
        key = (question.adapter, YES_OR_NO_QUERY, question.asked_at_s, question.text)
        state = RequestState(await self._account.read(oracle, _STATE, *key))
        try:
            found = await self._account.read(oracle, _REQUEST, *key)
        except MalformedCalldata:
            found = await self._account.read(oracle, _EARLIER_REQUEST, *key)
        price = found[_PRICE if state is RequestState.SETTLED else _PROPOSED_PRICE]
        answer = None if state is RequestState.REQUESTED else ANSWER_BY_PRICE.get(price)
        return QuestionStanding(
            state, answer, found[_BOND], found[_EXPIRES_AT], question.asked_at_s
        )

    async def _stake(self, question: AskedQuestion, calldata: bytes) -> TxReceipt:
        """Send a call that takes the bond; the oracle is allowed to take that and no more."""
        oracle, collateral = parse_address(question.stack.oracle), self._contracts.collateral
        bond_units = (await self._standing(question)).bond_units
        if await self._allowance_units(collateral, oracle) < bond_units:
            approval = Approve(oracle, bond_units).encode()
            await self._account.call(ContractCall(collateral, approval))
        return await self._account.call(ContractCall(oracle, calldata))

    async def _allowance_units(self, collateral: Address, spender: Address) -> int:
        owner = self._account.address
        return int(await self._account.read(collateral, _ALLOWANCE, owner, spender))


def _request(question: AskedQuestion) -> PriceRequest:
    return PriceRequest(question.adapter, question.asked_at_s, question.text)


def _topic(address: Address) -> str:
    return "0x" + address[2:].rjust(64, "0")
