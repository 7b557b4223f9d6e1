"""Scripted logs in the order in which the contracts write them, for tests without a chain."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tests.rigs.values import COLLATERAL_CONTRACT, EXCHANGE, a_word, an_address

from foretell.domain.contracts.logs import (
    ChainLog,
    CollateralApproved,
    CollateralTransferred,
    ConditionPrepared,
    ConditionResolved,
    LogPlace,
    OrderFilledLog,
    PayoutRedeemed,
    PlacedLog,
    PositionsMerged,
    PositionSplit,
    TokensApproved,
    TokensTransferred,
)
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import Position
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32, Address, Bytes32
from foretell.domain.values.tokens import token_pair
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.project import apply_blocks
from foretell.indexer.state import IndexState
from foretell.store.index.blocks import Block

TOKENS_CONTRACT: Final = Address("0x" + "c7" * 20)
CONTRACTS: Final = IndexedContracts(COLLATERAL_CONTRACT, TOKENS_CONTRACT, frozenset({EXCHANGE}))
ORACLE: Final = an_address("oracle")
FEE_RECEIVER: Final = an_address("fee receiver")
CONDITION: Final = a_word("condition")
ANN, BOB, CAROL = an_address("ann"), an_address("bob"), an_address("carol")
YES, NO = (AssetId(str(token)) for token in token_pair(COLLATERAL_CONTRACT, CONDITION))


class Fill(NamedTuple):
    """One order of a match."""

    wallet: Address
    side: Side
    token: AssetId
    size_units: int
    cost_units: int
    fee_units: int = 0


class ChainScript:
    """Blocks of scripted logs: log indexes count through a block, transactions through all blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.logs: list[PlacedLog] = []
        self._tx_count = 0
        self.next_block()

    def next_block(self) -> None:
        number = len(self.blocks) + 1
        here, parent = a_word(f"block {number}"), a_word(f"block {number - 1}")
        self.blocks.append(Block(number, here, parent, 1000 + number))
        self._log_count = 0
        self.next_tx()

    def next_tx(self) -> None:
        self._tx_count += 1

    @property
    def tx_hash(self) -> Bytes32:
        return a_word(f"tx {self._tx_count}")

    def log(self, contract: Address, log: ChainLog) -> None:
        block = self.blocks[-1]
        place = LogPlace(
            block.block_number, block.block_hash, block.timestamp_s, self._log_count, self.tx_hash
        )
        self.logs.append(PlacedLog(place, contract, log))
        self._log_count += 1

    def prepare(self, condition: Bytes32 = CONDITION, slots: int = 2) -> None:
        question = a_word("question")
        self.log(TOKENS_CONTRACT, ConditionPrepared(condition, ORACLE, question, slots))

    def resolve(self, *numerators: int, condition: Bytes32 = CONDITION) -> None:
        question = a_word("question")
        self.log(TOKENS_CONTRACT, ConditionResolved(condition, ORACLE, question, numerators))

    def pay(self, sender: Address, receiver: Address, units: int) -> None:
        self.log(COLLATERAL_CONTRACT, CollateralTransferred(sender, receiver, units))

    def allow(self, owner: Address, spender: Address, units: int) -> None:
        self.log(COLLATERAL_CONTRACT, CollateralApproved(owner, spender, units))

    def allow_tokens(self, owner: Address, operator: Address, *, is_approved: bool) -> None:
        self.log(TOKENS_CONTRACT, TokensApproved(owner, operator, is_approved))

    def move(
        self,
        sender: Address,
        receiver: Address,
        units: int,
        tokens: Sequence[AssetId] = (YES,),
        operator: Address | None = None,
    ) -> None:
        amounts = (units,) * len(tokens)
        moved = TokensTransferred(operator or sender, sender, receiver, tuple(tokens), amounts)
        self.log(TOKENS_CONTRACT, moved)

    def split(self, holder: Address, units: int) -> None:
        self.pay(holder, TOKENS_CONTRACT, units)
        self.move(ZERO_ADDRESS, holder, units, (YES, NO), operator=holder)
        self.log_split(holder, units)

    def log_split(self, holder: Address, units: int) -> None:
        self.log(
            TOKENS_CONTRACT,
            PositionSplit(holder, COLLATERAL_CONTRACT, ZERO_BYTES32, CONDITION, (1, 2), units),
        )

    def merge(self, holder: Address, units: int) -> None:
        self.move(holder, ZERO_ADDRESS, units, (YES, NO))
        self.pay(TOKENS_CONTRACT, holder, units)
        self.log(
            TOKENS_CONTRACT,
            PositionsMerged(holder, COLLATERAL_CONTRACT, ZERO_BYTES32, CONDITION, (1, 2), units),
        )

    def redeem(self, holder: Address, burned: Sequence[tuple[AssetId, int]], payout: int) -> None:
        for token, units in burned:
            self.move(holder, ZERO_ADDRESS, units, (token,))
        self.pay(TOKENS_CONTRACT, holder, payout)
        self.log(
            TOKENS_CONTRACT,
            PayoutRedeemed(holder, COLLATERAL_CONTRACT, ZERO_BYTES32, CONDITION, (1, 2), payout),
        )

    def trade(self, taker: Fill, maker: Fill) -> None:
        """Match a BUY and a SELL of one token."""
        buyer, seller = (taker, maker) if taker.side is Side.BUY else (maker, taker)
        proceeds = seller.cost_units - seller.fee_units
        bought = buyer.size_units - buyer.fee_units
        self.pay(buyer.wallet, seller.wallet, proceeds)
        self.move(seller.wallet, buyer.wallet, bought, (seller.token,), operator=EXCHANGE)
        if buyer.fee_units:
            fee, tokens = buyer.fee_units, (seller.token,)
            self.move(seller.wallet, FEE_RECEIVER, fee, tokens, operator=EXCHANGE)
        if seller.fee_units:
            self.pay(buyer.wallet, FEE_RECEIVER, seller.fee_units)
        self.filled(maker, taker.wallet)
        self.filled(taker, EXCHANGE)

    def mint(self, taker: Fill, maker: Fill) -> None:
        """Match two BUYs of complements."""
        for fill in (maker, taker):
            self.pay(fill.wallet, EXCHANGE, fill.cost_units)
        self.filled(maker, taker.wallet)
        self.split(EXCHANGE, taker.size_units)
        for fill in (maker, taker):
            bought, tokens = fill.size_units - fill.fee_units, (fill.token,)
            self.move(EXCHANGE, fill.wallet, bought, tokens)
            if fill.fee_units:
                self.move(EXCHANGE, FEE_RECEIVER, fill.fee_units, tokens)
        self.filled(taker, EXCHANGE)

    def unmint(self, taker: Fill, maker: Fill) -> None:
        """Match two SELLs of complements."""
        for fill in (maker, taker):
            self.move(fill.wallet, EXCHANGE, fill.size_units, (fill.token,), operator=EXCHANGE)
        self.filled(maker, taker.wallet)
        self.merge(EXCHANGE, taker.size_units)
        for fill in (maker, taker):
            self.pay(EXCHANGE, fill.wallet, fill.cost_units - fill.fee_units)
            self.pay(EXCHANGE, FEE_RECEIVER, fill.fee_units)
        self.filled(taker, EXCHANGE)

    def filled(self, fill: Fill, counterparty: Address) -> None:
        self.log(
            EXCHANGE,
            OrderFilledLog(
                a_word(f"order of {fill.wallet} {fill.side.name}"),
                fill.wallet,
                counterparty,
                fill.side,
                fill.token,
                fill.size_units,
                fill.cost_units,
                fill.fee_units,
            ),
        )


class ScriptResult:
    """The state, rows and changes that a script is projected to."""

    def __init__(self, script: ChainScript, contracts: IndexedContracts = CONTRACTS) -> None:
        self.state = IndexState()
        self.rows, self.changes = apply_blocks(contracts, self.state, script.blocks, script.logs)

    def position(self, wallet: Address, token: AssetId) -> Position:
        return self.state.positions[wallet, token]

    def held(self, wallet: Address, *assets: AssetId) -> tuple[int, ...]:
        return tuple(self.state.balances[wallet, asset] for asset in assets)

    def acts(self) -> list[tuple[object, ...]]:
        return [
            (act.wallet, act.kind, act.token_id, act.side, act.size_units, act.cost_units)
            for act in self.rows.activities
        ]


def a_scripted_market() -> ChainScript:
    """A condition is prepared, and Ann has collateral."""
    script = ChainScript()
    script.prepare()
    script.pay(ZERO_ADDRESS, ANN, 1000)
    script.next_block()
    return script
