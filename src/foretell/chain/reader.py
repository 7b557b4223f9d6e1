"""Reads of the contracts' state, as typed values.

Every method takes the block to read at. A node without history answers for `latest` only.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import (
    BlockHeader,
    bytes_of,
    header_of,
    quantity_of,
)
from foretell.chain.views import (
    LATEST,
    BlockTag,
    ViewCall,
    accepts_signature,
    bounded_views,
    call_view,
    call_views,
    revert_of_call,
)
from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.creation.asked_terms import AskedTerms
from foretell.domain.errors.chain import ChainInconsistent, ExecutionReverted
from foretell.domain.evm.abi import contract_function
from foretell.domain.portfolio.solvency import BackingUnits, backing_of
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    ZERO_BYTES32,
    Address,
    Bytes32,
    word_bytes,
    word_of,
)
from foretell.domain.values.tokens import OUTCOME_SLOTS, TokenPair

BALANCES_PER_CALL_MAX: Final = 500

_BALANCE_OF: Final = contract_function("balanceOf(address)", "(uint256)")
_TOTAL_SUPPLY: Final = contract_function("totalSupply()", "(uint256)")
_ALLOWANCE: Final = contract_function("allowance(address,address)", "(uint256)")
_BALANCE_OF_BATCH: Final = contract_function("balanceOfBatch(address[],uint256[])", "(uint256[])")
_SLOT_COUNT: Final = contract_function("getOutcomeSlotCount(bytes32)", "(uint256)")
_PAYOUT_NUMERATOR: Final = contract_function("payoutNumerators(bytes32,uint256)", "(uint256)")
_PAYOUT_DENOMINATOR: Final = contract_function("payoutDenominator(bytes32)", "(uint256)")
_NONCES: Final = contract_function("nonces(address)", "(uint256)")
_CONDITION_OF: Final = contract_function("getConditionId(uint256)", "(bytes32)")
_COMPLEMENT_OF: Final = contract_function("getComplement(uint256)", "(uint256)")
_SAFE_NONCE: Final = contract_function("nonce()", "(uint256)")
_SAFE_THRESHOLD: Final = contract_function("getThreshold()", "(uint256)")
_SAFE_OWNERS: Final = contract_function("getOwners()", "(address[])")
_RELAY_NONCE: Final = contract_function("getNonce(address)", "(uint256)")
_WHITELIST_OF: Final = contract_function("whitelistOf(address)", "(address)")
_WHITELIST_CREATOR: Final = contract_function("creator()", "(address)")
_WHITELIST_PROPOSERS: Final = contract_function("getProposers()", "(address[])")
_QUESTION: Final = contract_function(
    "getQuestion(bytes32)",
    "((uint256,uint256,uint256,uint256,uint256,bool,bool,bool,bool,address,address,bytes))",
)
_QUESTION_COUNT: Final = contract_function("getQuestionCount(bytes32)", "(uint256)")
_IS_SEALED: Final = contract_function("isSealed(bytes32)", "(bool)")
_FALLBACK_PERIOD: Final = contract_function("fallbackPeriod()", "(uint256)")
_CREATION_FEE: Final = contract_function("creationFee()", "(uint256)")
_QUESTION_IDS: Final = contract_function("questionIds(bytes32)", "(bytes32)")
_DEFAULT_BOND: Final = contract_function("defaultBond()", "(uint256)")
_DEFAULT_LIVENESS: Final = contract_function("defaultLiveness()", "(uint256)")
_CREATOR_OF: Final = contract_function("creatorOf(bytes32)", "(address)")
_METADATA_OF: Final = contract_function("metadataOf(bytes32)", "(string)")


class Payouts(NamedTuple):
    """The payout that an oracle reported: each outcome's numerator, and the denominator."""

    yes: int
    no: int
    denominator: int


class SafeState(NamedTuple):
    """The nonce, threshold and owners of a Safe that exists."""

    nonce: int
    threshold: int
    owners: tuple[Address, ...]

    def is_owned_by(self, owner: Address) -> bool:
        """Return whether this owner's signature alone is enough for the Safe."""
        return self.threshold == 1 and owner in self.owners


class ProposerWhitelist(NamedTuple):
    """The accounts that may resolve a creator's markets."""

    address: Address
    proposers: tuple[Address, ...]


class Question(NamedTuple):
    """A question as its adapter stores it."""

    asked_at_s: int
    creator: Address
    ancillary_data: bytes
    reward_token: Address
    is_resolved: bool
    terms: AskedTerms


class ProposalTerms(NamedTuple):
    """The bond of a proposal, and how long it can be disputed."""

    bond_units: int
    liveness_s: int


class MarketEntry(NamedTuple):
    """A condition's entry in the market registry; `metadata_id` is empty until it is set."""

    creator: Address
    metadata_id: str


class EventState(NamedTuple):
    """The questions of an event; `is_sealed` is None when its adapter is of a version that seals none."""

    question_count: int
    is_sealed: bool | None


class Reader:
    """Reads of one deployment."""

    def __init__(self, rpc: Rpc, deployment: Deployment, public_rpc: Rpc | None = None) -> None:
        self.rpc = rpc
        self._deployment = deployment
        self.public: Reader = Reader(public_rpc, deployment) if public_rpc else self
        """The same reads, for anyone who asks."""

    async def collateral_units(self, wallet: Address, at: str = LATEST) -> int:
        """Return how much collateral a wallet holds."""
        call = ViewCall(self._deployment.collateral, _BALANCE_OF, (wallet,))
        return int(await call_view(self.rpc, call, at))

    async def backing(self, at: BlockTag = LATEST) -> BackingUnits:
        """Return what the contracts hold under outcome tokens, in one round trip."""
        tokens, collateral = self._deployment.conditional_tokens, self._deployment.collateral
        calls = [ViewCall(collateral, _BALANCE_OF, (tokens,))]
        if ContractName.WRAPPED_COLLATERAL in self._deployment.contracts:
            wrapped = self._deployment.address(ContractName.WRAPPED_COLLATERAL)
            adapter = self._deployment.address(ContractName.NEG_RISK_ADAPTER)
            held = ((collateral, wrapped), (wrapped, tokens), (wrapped, adapter))
            calls += [ViewCall(asset, _BALANCE_OF, (holder,)) for asset, holder in held]
            calls.append(ViewCall(wrapped, _TOTAL_SUPPLY))
        return backing_of(*await call_views(self.rpc, calls, at))

    async def allowance_units(self, wallet: Address, spender: Address, at: str = LATEST) -> int:
        """Return how much collateral of the wallet the spender may move."""
        call = ViewCall(self._deployment.collateral, _ALLOWANCE, (wallet, spender))
        return int(await call_view(self.rpc, call, at))

    async def token_units(
        self, holdings: Sequence[tuple[Address, str]], at: str = LATEST
    ) -> list[int]:
        """Return the balance of each pair of a wallet and a token id."""
        calls = []
        for start in range(0, len(holdings), BALANCES_PER_CALL_MAX):
            part = holdings[start : start + BALANCES_PER_CALL_MAX]
            arguments = [wallet for wallet, _ in part], [int(token) for _, token in part]
            calls.append(self._of_tokens(_BALANCE_OF_BATCH, *arguments))
        return [units for balances in await call_views(self.rpc, calls, at) for units in balances]

    async def payouts(self, condition_id: Bytes32, at: str = LATEST) -> Payouts | None:
        """Return the payout of a binary condition, or None before the oracle reported it."""
        condition = word_bytes(condition_id)
        calls = [
            self._of_tokens(_PAYOUT_DENOMINATOR, condition),
            self._of_tokens(_SLOT_COUNT, condition),
        ]
        denominator, slots = await call_views(self.rpc, calls, at)
        if not denominator:
            return None
        if slots != OUTCOME_SLOTS:
            raise ChainInconsistent(f"{condition_id} has {slots} outcomes")
        yes, no = await call_views(
            self.rpc,
            [self._of_tokens(_PAYOUT_NUMERATOR, condition, slot) for slot in range(slots)],
            at,
        )
        return Payouts(yes, no, denominator)

    async def are_prepared(self, condition_ids: Sequence[Bytes32], at: str = LATEST) -> list[bool]:
        """Return of each condition whether the chain has it."""
        calls = [self._of_tokens(_SLOT_COUNT, word_bytes(each)) for each in condition_ids]
        return [bool(slots) for slots in await call_views(self.rpc, calls, at)]

    async def exchange_nonce(
        self, maker: Address, exchange: Address | None = None, at: str = LATEST
    ) -> int:
        """Return the nonce that a maker's orders must have, by default at the standard exchange."""
        call = ViewCall(exchange or self._deployment.exchange, _NONCES, (maker,))
        return int(await call_view(self.rpc, call, at))

    async def is_registered(
        self,
        pair: TokenPair,
        condition_id: Bytes32,
        exchange: Address | None = None,
        at: str = LATEST,
    ) -> bool:
        """Return whether an exchange, by default the standard one, trades exactly these tokens."""
        exchange = exchange or self._deployment.exchange
        calls = [
            ViewCall(exchange, _CONDITION_OF, (pair.yes,)),
            ViewCall(exchange, _COMPLEMENT_OF, (pair.yes,)),
        ]
        try:
            condition, complement = await call_views(self.rpc, calls, at)
        except ExecutionReverted:
            return False
        return bool(word_of(condition) == condition_id and complement == pair.no)

    async def safe(self, address: Address, at: str = LATEST) -> SafeState | None:
        """Return a Safe's state, or None when the address does not answer as a Safe, within bounds."""
        views = (_SAFE_NONCE, _SAFE_THRESHOLD, _SAFE_OWNERS)
        found = await bounded_views(self.rpc, [ViewCall(address, each) for each in views], at)
        if None in found:
            return None
        nonce, threshold, owners = found
        return SafeState(nonce, threshold, tuple(map(Address, owners)))

    async def wallet_nonce(self, address: Address, at: str = LATEST) -> int | None:
        """Return how many transactions a Safe or a deposit wallet made, or None for another address."""
        (nonce,) = await bounded_views(self.rpc, [ViewCall(address, _SAFE_NONCE)], at)
        return None if nonce is None else int(nonce)

    async def relay_nonce(self, hub: Address, owner: Address, at: str = LATEST) -> int:
        """Return how many calls of an owner a relay hub has made."""
        return int(await call_view(self.rpc, ViewCall(hub, _RELAY_NONCE, (owner,)), at))

    async def accepts_signature(
        self, wallet: Address, digest: bytes, signature: bytes, at: str = LATEST
    ) -> bool:
        """Return whether a contract wallet accepts a signature, within the gas that the exchange gives it.

        A wallet that is not there, reverts or answers more than a word does not accept it.
        """
        return await accepts_signature(self.rpc, wallet, digest, signature, at)

    async def revert_of(
        self, sender: Address, target: Address, calldata: bytes, gas: int
    ) -> ExecutionReverted | None:
        """Return the revert that a call of this sender would end in with this gas, or None."""
        call = {"from": sender, "to": target, "data": "0x" + calldata.hex(), "gas": hex(gas)}
        return await revert_of_call(self.rpc, call, LATEST)

    async def code(self, address: Address, at: str = LATEST) -> bytes:
        """Return the code at an address; empty for an account without code."""
        return bytes_of(await self.rpc.call("eth_getCode", address, at), "eth_getCode")

    async def proposer_whitelist(
        self, creator: Address, at: str = LATEST
    ) -> ProposerWhitelist | None:
        """Return the creator's whitelist, or None when it has none of its own.

        The creator chooses the contract, so it counts only when it names the creator and answers
        as a whitelist does.
        """
        registry = self._deployment.address(ContractName.PROPOSER_WHITELIST_REGISTRY)
        address = await call_view(self.rpc, ViewCall(registry, _WHITELIST_OF, (creator,)), at)
        if address == ZERO_ADDRESS:
            return None
        views = (_WHITELIST_CREATOR, _WHITELIST_PROPOSERS)
        calls = [ViewCall(Address(address), each) for each in views]
        named_creator, proposers = await bounded_views(self.rpc, calls, at)
        if named_creator != creator or proposers is None:
            return None
        return ProposerWhitelist(Address(address), tuple(map(Address, proposers)))

    async def question(
        self, question_id: Bytes32, adapter: Address | None = None, at: str = LATEST
    ) -> Question | None:
        """Return a question as its adapter stores it, or None when it was not asked there.

        The default adapter is the one of direct resolution outside of events.
        """
        adapter = adapter or self._deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
        return (await self.questions([question_id], adapter, at))[0]

    async def questions(
        self, question_ids: Sequence[Bytes32], adapter: Address, at: str = LATEST
    ) -> list[Question | None]:
        """Return questions as their adapter stores them, None for each that was not asked there."""
        calls = [ViewCall(adapter, _QUESTION, (word_bytes(each),)) for each in question_ids]
        return [_question(words) for words in await call_views(self.rpc, calls, at)]

    async def event_question(
        self, operator: Address, asked_id: Bytes32, at: str = LATEST
    ) -> Bytes32 | None:
        """Return the event's id of a question that was asked, or None when it is in no event."""
        call = ViewCall(operator, _QUESTION_IDS, (word_bytes(asked_id),))
        found = word_of(await call_view(self.rpc, call, at))
        return None if found == ZERO_BYTES32 else found

    async def event_creator(
        self, operator: Address, market_id: Bytes32, at: str = LATEST
    ) -> Address | None:
        """Return the creator of an event, or None when the event does not exist."""
        creator = await call_view(
            self.rpc, ViewCall(operator, _CREATOR_OF, (word_bytes(market_id),)), at
        )
        return None if creator == ZERO_ADDRESS else Address(creator)

    async def event_state(
        self, neg_risk_adapter: Address, market_id: Bytes32, at: str = LATEST
    ) -> EventState:
        """Return how many questions an event has, and whether that is all of them."""
        word = word_bytes(market_id)
        count = await call_view(self.rpc, ViewCall(neg_risk_adapter, _QUESTION_COUNT, (word,)), at)
        try:
            is_sealed = await call_view(
                self.rpc, ViewCall(neg_risk_adapter, _IS_SEALED, (word,)), at
            )
        except (ExecutionReverted, ChainInconsistent):
            is_sealed = None
        return EventState(count, is_sealed)

    async def proposal_terms(self, adapter: Address, at: str = LATEST) -> ProposalTerms:
        """Return the optimistic stack's terms of a proposal when its question names none."""
        calls = [ViewCall(adapter, _DEFAULT_BOND), ViewCall(adapter, _DEFAULT_LIVENESS)]
        bond_units, liveness_s = await call_views(self.rpc, calls, at)
        return ProposalTerms(bond_units, liveness_s)

    async def states_end(self, adapter: Address, at: str = LATEST) -> bool:
        """Return whether a question of a direct adapter states its end; before, it could not."""
        try:
            await call_view(self.rpc, ViewCall(adapter, _FALLBACK_PERIOD), at)
        except (ExecutionReverted, ChainInconsistent):
            return False
        return True

    async def creation_fee_units(self, adapter: Address | None = None, at: str = LATEST) -> int:
        """Return the current fee of a question of direct resolution, at one of its adapters."""
        adapter = adapter or self._deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
        return int(await call_view(self.rpc, ViewCall(adapter, _CREATION_FEE), at))

    async def market_entry(self, condition_id: Bytes32, at: str = LATEST) -> MarketEntry | None:
        """Return the registry's entry of a condition, or None when it has none."""
        registry = self._deployment.address(ContractName.MARKET_REGISTRY)
        condition = word_bytes(condition_id)
        calls = [
            ViewCall(registry, function, (condition,)) for function in (_CREATOR_OF, _METADATA_OF)
        ]
        creator, metadata_id = await call_views(self.rpc, calls, at)
        return None if creator == ZERO_ADDRESS else MarketEntry(Address(creator), metadata_id)

    async def chain_id(self) -> int:
        """Return the id of the node's chain."""
        return quantity_of(await self.rpc.call("eth_chainId"), "eth_chainId")

    async def head(self) -> int:
        """Return the number of the newest block."""
        return quantity_of(await self.rpc.call("eth_blockNumber"), "eth_blockNumber")

    async def header(self, at: str = LATEST) -> BlockHeader | None:
        """Return the header of a block, or None when the node does not have it."""
        return header_of(await self.rpc.call("eth_getBlockByNumber", at, False))  # noqa: FBT003 - as the protocol has it

    def _of_tokens(self, function: Any, *arguments: object) -> ViewCall:
        return ViewCall(self._deployment.conditional_tokens, function, arguments)


def _question(words: Any) -> Question | None:
    asked_at_s, is_resolved, reward_token, creator, text = (words[i] for i in (0, 5, 9, 10, 11))
    if not asked_at_s:
        return None
    terms = AskedTerms(*words[1:4])
    return Question(asked_at_s, Address(creator), text, Address(reward_token), is_resolved, terms)
