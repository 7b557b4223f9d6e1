"""Signed transactions that settle trades in full batches, without an exchange that matches them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from foretell.bench.rigs.load import Offer, sign_order
from foretell.bench.rigs.settle.chain import ChainTrader, SettleChain
from foretell.chain.fees import fetch_fees
from foretell.chain.rpc_types import quantity_of
from foretell.chain.sending_account import FEE_CAP_WEI
from foretell.domain.contracts.batches import MATCHES_MAX, encode_settle
from foretell.domain.contracts.calldata import OrderFill
from foretell.domain.contracts.packed_match import encode_match_packed
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_CHAIN_ID,
    AccountRole,
    sandbox_account,
)
from foretell.domain.evm.raw_transaction import TxFields, sign_tx
from foretell.settlement.batch_call import BATCH_GAS, SHARE_GAS
from foretell.settlement.match_call import match_gas

PRICE_TICKS: Final = 40
SIZE_UNITS: Final = 1_000_000
MAKERS: Final = 1


class BatchedTrades:
    """Transactions of the sandbox's operator, each with a full batch of trades of two orders."""

    def __init__(self, chain: SettleChain) -> None:
        self._chain = chain
        self._operator = sandbox_account(AccountRole.OPERATOR, SANDBOX_CHAIN_ID)
        self._pairs = itertools.cycle(zip(chain.traders[::2], chain.traders[1::2], strict=True))
        self._salts = itertools.count()

    async def nonce(self, at: str) -> int:
        """Return how many transactions of the operator there are in blocks, or `pending` too."""
        count = await self._chain.rpc.call("eth_getTransactionCount", self._operator.address, at)
        return quantity_of(count, "eth_getTransactionCount")

    async def sign(self, trades: int) -> Sequence[str]:
        """Return the transactions of so many trades, encoded, in the order of their nonces."""
        settler = self._chain.deployment.batch_settler
        assert settler is not None, "the sandbox has one"
        fees, nonce = await fetch_fees(self._chain.rpc, FEE_CAP_WEI), await self.nonce("latest")
        gas = BATCH_GAS + (MATCHES_MAX + 1) * (match_gas(MAKERS) + SHARE_GAS)
        signed = []
        for number, start in enumerate(range(0, trades, MATCHES_MAX)):
            matches = list(itertools.islice(self._matches(), min(MATCHES_MAX, trades - start)))
            limits = [match_gas(MAKERS)] * len(matches)
            calldata = encode_settle(self._chain.deployment.exchange, matches, limits)
            fields = TxFields(SANDBOX_CHAIN_ID, nonce + number, fees, gas, settler, calldata)
            signed.append("0x" + sign_tx(fields, self._operator.private_key).raw.hex())
        return signed

    def _matches(self) -> Iterator[bytes]:
        """Yield calls that match two new orders."""
        while True:
            taker, maker = next(self._pairs)
            taken = self._fill(taker, is_buy=True)
            match = encode_match_packed(taken, [self._fill(maker, is_buy=False)])
            assert match is not None, "orders of plain accounts can be packed"
            yield match

    def _fill(self, trader: ChainTrader, *, is_buy: bool) -> OrderFill:
        offer = Offer(0, is_buy, PRICE_TICKS, SIZE_UNITS)
        separators, token = self._chain.deployment.separators(), self._chain.tokens.yes
        salt = next(self._salts)
        order = sign_order(separators, trader.private_key, trader.address, salt, token, offer)
        return OrderFill(order, order.maker_amount)
