"""Resolution by a whitelisted proposer, and the whitelists of creators."""

from collections.abc import Sequence
from typing import Any, Final

from foretell.domain.contracts.calldata import (
    REGISTER_WHITELIST,
    YES_OR_NO_QUERY,
    Resolution,
)
from foretell.domain.contracts.neg_risk import PROPOSE_AND_RESOLVE_NEG_RISK
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.errors.chain import ChainInconsistent
from foretell.domain.errors.command import NotDirectlyResolved, NoWhitelist
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    Address,
    parse_address,
    word_bytes,
)
from foretell.sdk.chain import ChainAccount, TxReceipt
from foretell.sdk.contracts import Contracts
from foretell.sdk.oracles.optimistic import PRICE_BY_ANSWER
from foretell.sdk.oracles.questions import fetch_question

DIRECT: Final = ResolutionType.DIRECT

_WHITELIST_OF: Final = contract_function("whitelistOf(address)", "(address)")
_PROPOSERS: Final = contract_function("getProposers()", "(address[])")
_ADD: Final = contract_function("addProposers(address[])")
_REMOVE: Final = contract_function("removeProposers(address[])")


class MarketResolver:
    """A proposer that answers the questions of directly resolved markets, finally."""

    def __init__(self, account: ChainAccount, contracts: Contracts) -> None:
        self._account = account
        self._contracts = contracts

    async def resolve(self, market: dict[str, Any], answer: str) -> TxReceipt:
        """Answer the question of a market as the discovery API lists it.

        The answer is a key of `PRICE_BY_ANSWER`. A market of another stack is refused.
        """
        price = PRICE_BY_ANSWER[answer]
        question = await fetch_question(self._account, self._contracts, market)
        if question.stack_name != DIRECT:
            raise NotDirectlyResolved(str(market["conditionId"]))
        stack, adapter = question.stack, question.adapter
        if question.is_event:
            calldata = PROPOSE_AND_RESOLVE_NEG_RISK.encode(
                adapter,
                parse_address(stack.neg_risk_operator),
                word_bytes(question.asked_id),
                word_bytes(question.question_id),
                YES_OR_NO_QUERY,
                question.asked_at_s,
                question.text,
                price,
            )
        else:
            answered = Resolution(
                adapter, question.asked_id, question.asked_at_s, question.text, price
            )
            calldata = answered.encode()
        return await self._account.call(ContractCall(parse_address(stack.oracle), calldata))

    async def close_others(self, markets: Sequence[dict[str, Any]]) -> list[TxReceipt]:
        """Close the other markets of a `multi_unique` event as No, after one was answered Yes."""
        questions = [await fetch_question(self._account, self._contracts, each) for each in markets]
        return await self._account.call_all([each.forward() for each in questions])


class Whitelist:
    """The list of accounts that may resolve a creator's markets."""

    def __init__(self, account: ChainAccount, contracts: Contracts) -> None:
        self._account = account
        self._registry = contracts.whitelist_registry

    async def address(self, creator: Address | None = None) -> Address | None:
        """Return the registered whitelist of a creator, by default the account itself; None without one."""
        owner = creator or self._account.address
        found = parse_address(await self._account.read(self._registry, _WHITELIST_OF, owner))
        return None if found == ZERO_ADDRESS else found

    async def proposers(self, creator: Address | None = None) -> list[Address]:
        """Return the proposers of a creator's whitelist."""
        whitelist = await self.address(creator)
        if whitelist is None:
            return []
        return [parse_address(each) for each in await self._account.read(whitelist, _PROPOSERS)]

    async def create(self, init_code: bytes) -> Address:
        """Deploy a whitelist of the account by its contract's creation code with arguments, and register it."""
        receipt = await self._account.deploy(init_code)
        if receipt.contract is None:
            raise ChainInconsistent("the receipt of a deployment names no contract")
        whitelist = parse_address(receipt.contract)
        await self._account.call(ContractCall(self._registry, REGISTER_WHITELIST.encode(whitelist)))
        return whitelist

    async def add(self, proposers: Sequence[Address]) -> TxReceipt:
        """Add proposers to the account's registered whitelist."""
        return await self._change(_ADD.encode(list(proposers)))

    async def remove(self, proposers: Sequence[Address]) -> TxReceipt:
        """Remove proposers from the account's registered whitelist."""
        return await self._change(_REMOVE.encode(list(proposers)))

    async def _change(self, calldata: bytes) -> TxReceipt:
        whitelist = await self.address()
        if whitelist is None:
            raise NoWhitelist(self._account.address)
        return await self._account.call(ContractCall(whitelist, calldata))
