"""A generated chain: each block follows from its number alone, and all blocks together add up.

The first blocks give collateral and allowances to wallets and prepare conditions. Each later block has matches, whose
logs are those that the exchange and the tokens write: two buyers mint a complete set, or a buyer of such a token
sells a part of it in the same block. Amounts are in base units.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from random import Random  # noqa: TID251 - the same plan gives the same chain
from typing import Any, Final, NamedTuple

import msgspec

from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.evm.bloom import BLOOM_BYTES, bloom_bits
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32, keccak256, word_of
from foretell.domain.values.tokens import TokenPair, condition_id, token_pair

FUNDS_UNITS: Final = 10**15
SIZE_UNITS: Final = 1_000_000
SOLD_UNITS: Final = 400_000
FEE_UNITS: Final = 5_000
UNLIMITED: Final = 2**256 - 1
WALLETS_PER_BLOCK: Final = 50
CONDITIONS_PER_BLOCK: Final = 10
GENESIS_S: Final = 1_750_000_000
BLOCK_S: Final = 2
FEE_RECEIVER: Final = Address("0x" + "fe" * 20)
BLOOMS_KEPT: Final = 100_000


class ChainPlan(NamedTuple):
    """The wallets and markets of a chain, the matches of each block, and the number of its newest block."""

    wallets: int = 10_000
    markets: int = 1_000
    matches_per_block: int = 4
    head: int = 1_000_000

    @property
    def first_match(self) -> int:
        """The first block with matches."""
        return 1 + max(
            -(-self.wallets // WALLETS_PER_BLOCK), -(-self.markets // CONDITIONS_PER_BLOCK)
        )


class Log(NamedTuple):
    """A log before it has a place: its contract, its topics and its data."""

    contract: Address
    topics: tuple[str, ...]
    data: str


class EncodedBlock(NamedTuple):
    """A block as JSON: its header, its logs and its receipts; lists are without their brackets."""

    header: bytes
    logs: bytes
    receipts: bytes


class GeneratedChain:
    """The blocks of a plan, for the contracts of a deployment."""

    def __init__(self, plan: ChainPlan, deployment: Deployment) -> None:
        self.plan = plan
        self._collateral = deployment.collateral
        self._tokens = deployment.conditional_tokens
        self._exchange = deployment.exchange
        self._oracle = deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
        self._market = lru_cache(maxsize=plan.markets)(self._new_market)
        self._wallet = lru_cache(maxsize=plan.wallets)(_new_wallet)

    def block(self, number: int) -> EncodedBlock:
        """Return a block; none is above the head."""
        assert 0 <= number <= self.plan.head
        header = _header(number)
        all_logs: list[dict[str, Any]] = []
        receipts = []
        bloom = 0
        for index, logs in enumerate(self._txs(number)):
            tx_hash = _hash(b"transaction %d %d" % (number, index))
            place = _place(header, tx_hash, index)
            written = [
                {
                    "address": log.contract,
                    "topics": log.topics,
                    "data": log.data,
                    **place,
                    "logIndex": hex(len(all_logs) + at),
                    "removed": False,
                }
                for at, log in enumerate(logs)
            ]
            own = 0
            for log in logs:
                for part in (log.contract, *log.topics):
                    own |= _bloom_of(part)
            bloom |= own
            receipts.append(_receipt(place, written, own))
            all_logs += written
        header["logsBloom"] = _bloom_text(bloom)
        header["transactions"] = [each["transactionHash"] for each in receipts]
        encode = msgspec.json.encode
        return EncodedBlock(encode(header), encode(all_logs)[1:-1], encode(receipts)[1:-1])

    def logs_in(self, number: int) -> int:
        """Return the number of logs of a block."""
        return sum(len(logs) for logs in self._txs(number))

    def _txs(self, number: int) -> Iterator[Sequence[Log]]:
        if 0 < number < self.plan.first_match:
            yield from self._beginnings(number - 1)
        elif number:
            yield from self._matches(number)

    def _beginnings(self, place: int) -> Iterator[Sequence[Log]]:
        plan = self.plan
        first = place * WALLETS_PER_BLOCK
        for wallet in map(self._wallet, range(first, min(first + WALLETS_PER_BLOCK, plan.wallets))):
            yield (
                self._paid(ZERO_ADDRESS, wallet, FUNDS_UNITS),
                Log(
                    self._collateral,
                    (APPROVAL, _word(wallet), _word(self._exchange)),
                    _data(UNLIMITED),
                ),
            )
        first = place * CONDITIONS_PER_BLOCK
        for market in range(first, min(first + CONDITIONS_PER_BLOCK, plan.markets)):
            question = _question(market)
            condition, _ = self._market(market)
            topics = (CONDITION_PREPARATION, condition, _word(self._oracle), question)
            yield (Log(self._tokens, topics, _data(2)),)

    def _matches(self, number: int) -> Iterator[Sequence[Log]]:
        random = Random(number)  # noqa: S311 - nothing is secret here
        for place in range(0, self.plan.matches_per_block, 2):
            condition, pair = self._market(random.randrange(self.plan.markets))
            wallets = random.sample(range(self.plan.wallets), 3)
            buyer, other, later = map(self._wallet, wallets)
            price = random.randrange(1, 100)
            order = f"{number} {place}"
            yield self._mint(order, (buyer, other), (condition, pair), SIZE_UNITS * price // 100)
            if place + 1 < self.plan.matches_per_block:
                yield self._sale(order, (buyer, later), pair.yes, SOLD_UNITS * price // 100)

    def _mint(
        self,
        order: str,
        buyers: tuple[Address, Address],
        market: tuple[Bytes32, TokenPair],
        cost: int,
    ) -> Sequence[Log]:
        """Return the logs of a match of two buyers; the first takes, and pays a fee in tokens."""
        exchange, (taker, maker), (condition, pair) = self._exchange, buyers, market
        rest, got = SIZE_UNITS - cost, SIZE_UNITS - FEE_UNITS
        sets = _data(self._collateral, 96, SIZE_UNITS, 2, 1, 2)
        return (
            self._paid(maker, exchange, rest),
            self._filled(order + " maker", (maker, taker), (0, pair.no, rest, SIZE_UNITS, 0)),
            self._paid(taker, exchange, cost),
            self._paid(exchange, self._tokens, SIZE_UNITS),
            Log(
                self._tokens,
                (TRANSFER_BATCH, _word(exchange), _word(ZERO_ADDRESS), _word(exchange)),
                _data(64, 160, 2, pair.yes, pair.no, 2, SIZE_UNITS, SIZE_UNITS),
            ),
            Log(self._tokens, (POSITION_SPLIT, _word(exchange), _word(0), condition), sets),
            self._moved((exchange, maker), pair.no, SIZE_UNITS),
            self._moved((exchange, taker), pair.yes, got),
            self._moved((exchange, FEE_RECEIVER), pair.yes, FEE_UNITS),
            self._charged(pair.yes),
            *self._taken(order, taker, (0, pair.yes, cost, SIZE_UNITS)),
        )

    def _sale(
        self, order: str, wallets: tuple[Address, Address], token: int, cost: int
    ) -> Sequence[Log]:
        """Return the logs of a match of a seller, who made, and a buyer, who pays a fee in tokens."""
        maker, taker = wallets
        return (
            self._moved((maker, FEE_RECEIVER), token, FEE_UNITS),
            self._charged(token),
            self._paid(taker, maker, cost),
            self._moved((maker, taker), token, SOLD_UNITS - FEE_UNITS),
            self._filled(order + " sale", (maker, taker), (token, 0, SOLD_UNITS, cost, 0)),
            *self._taken(order + " sale", taker, (0, token, cost, SOLD_UNITS)),
        )

    def _taken(
        self, order: str, taker: Address, terms: tuple[int, int, int, int]
    ) -> tuple[Log, Log]:
        order_id = _hash(f"order {order} taken".encode())
        return (
            self._filled(order + " taken", (taker, self._exchange), (*terms, FEE_UNITS)),
            Log(self._exchange, (ORDERS_MATCHED, order_id, _word(taker)), _data(*terms)),
        )

    def _filled(self, order: str, wallets: tuple[Address, Address], terms: tuple[int, ...]) -> Log:
        order_id = _hash(f"order {order}".encode())
        maker, counterparty = map(_word, wallets)
        return Log(self._exchange, (ORDER_FILLED, order_id, maker, counterparty), _data(*terms))

    def _charged(self, token: int) -> Log:
        return Log(self._exchange, (FEE_CHARGED, _word(FEE_RECEIVER)), _data(token, FEE_UNITS))

    def _paid(self, sender: Address, receiver: Address, units: int) -> Log:
        return Log(self._collateral, (TRANSFER, _word(sender), _word(receiver)), _data(units))

    def _moved(self, wallets: tuple[Address, Address], token: int, units: int) -> Log:
        sender, receiver = map(_word, wallets)
        topics = (TRANSFER_SINGLE, _word(self._exchange), sender, receiver)
        return Log(self._tokens, topics, _data(token, units))

    def _new_market(self, number: int) -> tuple[Bytes32, TokenPair]:
        condition = condition_id(self._oracle, _question(number))
        return condition, token_pair(self._collateral, condition)


def _new_wallet(number: int) -> Address:
    return Address("0x" + keccak256(b"wallet %d" % number)[12:].hex())


def _question(number: int) -> Bytes32:
    return _hash(b"question %d" % number)


def _hash(text: bytes) -> Bytes32:
    return word_of(keccak256(text))


def _word(value: str | int) -> str:
    number = value if isinstance(value, int) else int(value, 16)
    return f"0x{number:064x}"


def _data(*values: str | int) -> str:
    return "0x" + "".join(_word(value)[2:] for value in values)


def _header(number: int) -> dict[str, Any]:
    """Return a header in the form of a node, without what follows from its transactions."""
    return {
        "hash": _hash(b"block %d" % number),
        "parentHash": _hash(b"block %d" % (number - 1)) if number else _word(0),
        "sha3Uncles": _hash(b"uncles"),
        "miner": FEE_RECEIVER,
        "stateRoot": _hash(b"state %d" % number),
        "transactionsRoot": _hash(b"transactions %d" % number),
        "receiptsRoot": _hash(b"receipts %d" % number),
        "logsBloom": "",
        "difficulty": "0x0",
        "number": hex(number),
        "gasLimit": hex(30_000_000),
        "gasUsed": hex(12_345_678),
        "timestamp": hex(GENESIS_S + BLOCK_S * number),
        "extraData": "0x",
        "mixHash": _hash(b"mix %d" % number),
        "nonce": "0x0000000000000000",
        "baseFeePerGas": hex(10**9),
        "size": hex(2_000),
        "uncles": [],
        "transactions": [],
    }


def _place(header: dict[str, Any], tx_hash: str, index: int) -> dict[str, Any]:
    return {
        "blockHash": header["hash"],
        "blockNumber": header["number"],
        "blockTimestamp": header["timestamp"],
        "transactionHash": tx_hash,
        "transactionIndex": hex(index),
    }


def _receipt(place: dict[str, Any], logs: list[dict[str, Any]], bloom: int) -> dict[str, Any]:
    return {
        "type": "0x2",
        "status": "0x1",
        "cumulativeGasUsed": hex(200_000),
        "logs": logs,
        "logsBloom": _bloom_text(bloom),
        **place,
        "gasUsed": hex(200_000),
        "effectiveGasPrice": hex(10**9),
        "from": FEE_RECEIVER,
        "to": FEE_RECEIVER,
        "contractAddress": None,
    }


@lru_cache(maxsize=BLOOMS_KEPT)
def _bloom_of(part: str) -> int:
    return bloom_bits(bytes.fromhex(part[2:]))


def _bloom_text(bloom: int) -> str:
    return f"0x{bloom:0{2 * BLOOM_BYTES}x}"


def _topic(signature: str) -> str:
    return "0x" + keccak256(signature.encode()).hex()


TRANSFER: Final = _topic("Transfer(address,address,uint256)")
APPROVAL: Final = _topic("Approval(address,address,uint256)")
TRANSFER_SINGLE: Final = _topic("TransferSingle(address,address,address,uint256,uint256)")
TRANSFER_BATCH: Final = _topic("TransferBatch(address,address,address,uint256[],uint256[])")
CONDITION_PREPARATION: Final = _topic("ConditionPreparation(bytes32,address,bytes32,uint256)")
POSITION_SPLIT: Final = _topic("PositionSplit(address,address,bytes32,bytes32,uint256[],uint256)")
ORDER_FILLED: Final = _topic(
    "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)"
)
ORDERS_MATCHED: Final = _topic("OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)")
FEE_CHARGED: Final = _topic("FeeCharged(address,uint256,uint256)")
