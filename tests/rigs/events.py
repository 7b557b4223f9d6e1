"""A neg-risk event on the sandbox's chain: its questions, their resolution, and acts of traders."""

from dataclasses import dataclass
from typing import Self

from tests.rigs.payloads import a_payload, event_fields
from tests.rigs.sandbox import Sandbox

from foretell.chain.rpc_types import Receipt
from foretell.domain.contracts import neg_risk
from foretell.domain.contracts.calldata import (
    PRICE_NO,
    PRICE_YES,
    YES_OR_NO_QUERY,
    encode_register_token,
)
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import AccountRole, SandboxAccount
from foretell.domain.creation.plan import (
    EventContracts,
    MarketIds,
    PlanContracts,
    PlanFacts,
    build_plan,
    ids_of_markets,
)
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import Address, word_bytes


@dataclass(frozen=True, slots=True)
class SandboxEvent:
    """An event of the direct stack; its markets in their order."""

    sandbox: Sandbox
    markets: tuple[MarketIds, ...]

    @classmethod
    async def ask(cls, sandbox: Sandbox, count: int = 3, title: str = "Most rain") -> Self:
        """Create the event as its creator, and register its tokens for trading."""
        creator, deployment = sandbox.account(AccountRole.CREATOR), sandbox.deployment
        payload = a_payload(creator=creator.address, **event_fields(count=count, title=title))
        contracts = plan_contracts(sandbox)
        facts = PlanFacts(deployment.creation.neg_risk_fee_units, 0)
        plan = build_plan(payload, contracts, facts)
        await sandbox.caller(creator).call_all(
            [ContractCall(item.target, item.calldata) for item in plan]
        )
        markets = tuple(ids_of_markets(payload, contracts))
        await sandbox.caller(sandbox.account(AccountRole.REGISTRAR)).call_all(
            [
                ContractCall(
                    deployment.neg_risk_exchange,
                    encode_register_token(market.tokens, market.condition_id),
                )
                for market in markets
            ]
        )
        return cls(sandbox, markets)

    @property
    def adapter(self) -> Address:
        return self.sandbox.deployment.address(ContractName.NEG_RISK_ADAPTER)

    async def answer(self, place: int, *, is_yes: bool) -> None:
        """Resolve a question as the proposer, and report it to the event."""
        deployment, market = self.sandbox.deployment, self.markets[place]
        adapter = deployment.address(ContractName.NEG_RISK_DIRECT_ADAPTER)
        operator = deployment.address(ContractName.NEG_RISK_OPERATOR)
        question = await self.sandbox.reader.question(market.asked_id, adapter)
        assert question is not None
        answer = neg_risk.PROPOSE_AND_RESOLVE_NEG_RISK.encode(
            adapter,
            operator,
            word_bytes(market.asked_id),
            word_bytes(market.question_id),
            YES_OR_NO_QUERY,
            question.asked_at_s,
            question.ancillary_data,
            PRICE_YES if is_yes else PRICE_NO,
        )
        oracle = deployment.address(ContractName.DIRECT_RESOLUTION_ORACLE)
        await self.sandbox.call(self.sandbox.account(AccountRole.PROPOSER), oracle, answer)
        if await self.sandbox.reader.payouts(market.condition_id) is None:
            reported = neg_risk.RESOLVE_QUESTION.encode(word_bytes(market.question_id))
            await self.sandbox.call(self.sandbox.account(AccountRole.PROPOSER), operator, reported)

    async def split(self, trader: SandboxAccount, place: int, units: int) -> Receipt:
        """Split a trader's collateral into complete sets of a question."""
        condition = word_bytes(self.markets[place].condition_id)
        return await self._act(trader, neg_risk.SPLIT_SETS.encode(condition, units))

    async def merge(self, trader: SandboxAccount, place: int, units: int) -> Receipt:
        condition = word_bytes(self.markets[place].condition_id)
        return await self._act(trader, neg_risk.MERGE_SETS.encode(condition, units))

    async def redeem(
        self, trader: SandboxAccount, place: int, yes_units: int, no_units: int
    ) -> Receipt:
        condition = word_bytes(self.markets[place].condition_id)
        calldata = neg_risk.REDEEM_SETS.encode(condition, [yes_units, no_units])
        return await self._act(trader, calldata)

    async def convert(self, trader: SandboxAccount, index_set: int, units: int) -> Receipt:
        """Convert a trader's No's of the questions in the index set."""
        event_id = self.markets[0].neg_risk_market_id
        assert event_id is not None
        calldata = neg_risk.CONVERT_POSITIONS.encode(word_bytes(event_id), index_set, units)
        return await self._act(trader, calldata)

    async def _act(self, trader: SandboxAccount, calldata: bytes) -> Receipt:
        return await self.sandbox.call(trader, self.adapter, calldata)


def plan_contracts(sandbox: Sandbox) -> PlanContracts:
    """Return the contracts that a plan of the direct stack calls."""
    address = sandbox.deployment.address
    return PlanContracts(
        collateral=sandbox.deployment.collateral,
        adapter=address(ContractName.NEG_RISK_DIRECT_ADAPTER),
        market_registry=address(ContractName.MARKET_REGISTRY),
        event=EventContracts(
            operator=address(ContractName.NEG_RISK_OPERATOR),
            neg_risk_adapter=address(ContractName.NEG_RISK_ADAPTER),
            wrapped_collateral=address(ContractName.WRAPPED_COLLATERAL),
        ),
    )
