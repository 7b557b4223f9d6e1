from collections.abc import Sequence

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.contracts import logs
from foretell.domain.contracts.log_decoder import decode_log, topics_of
from foretell.domain.contracts.logs import ChainLog, ContractKind
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32, keccak256

ALICE = Address("0x" + "a1" * 20)
BOB = Address("0x" + "b0" * 20)
CAROL = Address("0x" + "ca" * 20)
ID = Bytes32("0x" + "1d" * 32)
OTHER_ID = Bytes32("0x" + "2e" * 32)
PARENT = Bytes32("0x" + "00" * 32)
TOKEN = 2**255 + 7


def a_topic(value: str | int) -> str:
    if isinstance(value, int):
        return f"0x{value % 2**256:064x}"
    return "0x" + value.removeprefix("0x").rjust(64, "0")


def a_log(
    signature: str,
    indexed: Sequence[str | int],
    kinds: Sequence[str] = (),
    values: Sequence[object] = (),
) -> tuple[list[str], str]:
    """Return a log as a contract emits it, by an independent encoder."""
    name = "0x" + keccak256(signature.encode()).hex()
    return [name, *map(a_topic, indexed)], "0x" + encode(kinds, values).hex()


ID_BYTES = bytes.fromhex(ID[2:])
SETS = ("address", "uint256[]", "uint256")
FILLED_V1 = "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)"
FILLED_V2 = (
    "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,bytes32,bytes32)"
)
MATCHED_V1 = "OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)"
MATCHED_V2 = "OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)"
INITIALIZED = "QuestionInitialized(bytes32,uint256,address,bytes,address,uint256,uint256)"
BATCH = "TransferBatch(address,address,address,uint256[],uint256[])"
RESOLVED = "ConditionResolution(bytes32,address,bytes32,uint256,uint256[])"
FIVE_NUMBERS = ("uint256",) * 5
V2_KINDS = ("uint8", *FIVE_NUMBERS[:4], "bytes32", "bytes32")

CASES: list[tuple[ContractKind, tuple[list[str], str], ChainLog]] = [
    (
        ContractKind.COLLATERAL,
        a_log("Transfer(address,address,uint256)", [ZERO_ADDRESS, BOB], ["uint256"], [9]),
        logs.CollateralTransferred(ZERO_ADDRESS, BOB, 9),
    ),
    (
        ContractKind.COLLATERAL,
        a_log("Approval(address,address,uint256)", [ALICE, BOB], ["uint256"], [2**256 - 1]),
        logs.CollateralApproved(ALICE, BOB, 2**256 - 1),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log(
            "TransferSingle(address,address,address,uint256,uint256)",
            [ALICE, BOB, CAROL],
            ["uint256", "uint256"],
            [TOKEN, 5],
        ),
        logs.TokensTransferred(ALICE, BOB, CAROL, (str(TOKEN),), (5,)),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log(BATCH, [ALICE, BOB, CAROL], ["uint256[]", "uint256[]"], [[TOKEN, 3], [5, 6]]),
        logs.TokensTransferred(ALICE, BOB, CAROL, (str(TOKEN), "3"), (5, 6)),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log(BATCH, [ALICE, BOB, CAROL], ["uint256[]", "uint256[]"], [[], []]),
        logs.TokensTransferred(ALICE, BOB, CAROL, (), ()),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log("ApprovalForAll(address,address,bool)", [ALICE, BOB], ["bool"], [True]),
        logs.TokensApproved(ALICE, BOB, is_approved=True),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log("ApprovalForAll(address,address,bool)", [ALICE, BOB], ["bool"], [False]),
        logs.TokensApproved(ALICE, BOB, is_approved=False),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log(
            "ConditionPreparation(bytes32,address,bytes32,uint256)",
            [ID, ALICE, OTHER_ID],
            ["uint256"],
            [2],
        ),
        logs.ConditionPrepared(ID, ALICE, OTHER_ID, 2),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log(RESOLVED, [ID, ALICE, OTHER_ID], ["uint256", "uint256[]"], [2, [1, 0]]),
        logs.ConditionResolved(ID, ALICE, OTHER_ID, (1, 0)),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log(
            "PositionSplit(address,address,bytes32,bytes32,uint256[],uint256)",
            [ALICE, PARENT, ID],
            SETS,
            [CAROL, [1, 2], 8],
        ),
        logs.PositionSplit(ALICE, CAROL, PARENT, ID, (1, 2), 8),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log(
            "PositionsMerge(address,address,bytes32,bytes32,uint256[],uint256)",
            [ALICE, PARENT, ID],
            SETS,
            [CAROL, [1, 2], 8],
        ),
        logs.PositionsMerged(ALICE, CAROL, PARENT, ID, (1, 2), 8),
    ),
    (
        ContractKind.CONDITIONAL_TOKENS,
        a_log(
            "PayoutRedemption(address,address,bytes32,bytes32,uint256[],uint256)",
            [ALICE, CAROL, PARENT],
            ["bytes32", "uint256[]", "uint256"],
            [ID_BYTES, [1, 2], 8],
        ),
        logs.PayoutRedeemed(ALICE, CAROL, PARENT, ID, (1, 2), 8),
    ),
    (
        ContractKind.EXCHANGE,
        a_log(FILLED_V1, [ID, ALICE, BOB], FIVE_NUMBERS, [0, TOKEN, 40, 100, 1]),
        logs.OrderFilledLog(ID, ALICE, BOB, Side.BUY, str(TOKEN), 100, 40, 1),
    ),
    (
        ContractKind.EXCHANGE,
        a_log(FILLED_V1, [ID, ALICE, BOB], FIVE_NUMBERS, [TOKEN, 0, 100, 40, 1]),
        logs.OrderFilledLog(ID, ALICE, BOB, Side.SELL, str(TOKEN), 100, 40, 1),
    ),
    (
        ContractKind.EXCHANGE,
        a_log(FILLED_V2, [ID, ALICE, BOB], V2_KINDS, [1, TOKEN, 100, 40, 1, ID_BYTES, ID_BYTES]),
        logs.OrderFilledLog(ID, ALICE, BOB, Side.SELL, str(TOKEN), 100, 40, 1, ID),
    ),
    (
        ContractKind.EXCHANGE,
        a_log(MATCHED_V1, [ID, ALICE], FIVE_NUMBERS[:4], [0, TOKEN, 40, 100]),
        logs.OrdersMatched(ID, ALICE, Side.BUY, str(TOKEN), 100, 40),
    ),
    (
        ContractKind.EXCHANGE,
        a_log(MATCHED_V2, [ID, ALICE], V2_KINDS[:4], [0, TOKEN, 40, 100]),
        logs.OrdersMatched(ID, ALICE, Side.BUY, str(TOKEN), 100, 40),
    ),
    (
        ContractKind.EXCHANGE,
        a_log("FeeCharged(address,uint256,uint256)", [ALICE], FIVE_NUMBERS[:2], [0, 5]),
        logs.FeeCharged(ALICE, "0", 5),
    ),
    (
        ContractKind.EXCHANGE,
        a_log("FeeCharged(address,uint256)", [ALICE], FIVE_NUMBERS[:1], [5]),
        logs.FeeCharged(ALICE, None, 5),
    ),
    (
        ContractKind.EXCHANGE,
        a_log("OrdersCancelledBefore(address,uint256)", [ALICE], ["uint256"], [2**200]),
        logs.OrdersCancelledBefore(ALICE, 2**200),
    ),
    (
        ContractKind.EXCHANGE,
        a_log("OwnerSigningChanged(address,bool)", [ALICE], ["bool"], [False]),
        logs.OwnerSigningChanged(ALICE, is_allowed=False),
    ),
    (
        ContractKind.EXCHANGE,
        a_log("OrderCancelled(bytes32)", [ID]),
        logs.OrderCancelled(ID),
    ),
    (
        ContractKind.EXCHANGE,
        a_log("NonceIncremented(address,uint256)", [ALICE], ["uint256"], [3]),
        logs.NonceIncremented(ALICE, 3),
    ),
    (
        ContractKind.EXCHANGE,
        a_log("TokenRegistered(uint256,uint256,bytes32)", [TOKEN, 12, ID]),
        logs.TokenRegistered(str(TOKEN), "12", ID),
    ),
    (
        ContractKind.RESOLUTION_ADAPTER,
        a_log(
            INITIALIZED,
            [ID, 1700, ALICE],
            ["bytes", "address", "uint256", "uint256"],
            [b"q: title" * 9, CAROL, 5, 6],
        ),
        logs.QuestionInitialized(ID, 1700, ALICE, b"q: title" * 9, CAROL, 5, 6),
    ),
    (
        ContractKind.RESOLUTION_ADAPTER,
        a_log("QuestionResolved(bytes32,int256,uint256[])", [ID, -1], ["uint256[]"], [[1, 1]]),
        logs.QuestionResolved(ID, -1, (1, 1)),
    ),
    (
        ContractKind.MARKET_REGISTRY,
        a_log("CreatorRecorded(bytes32,address,address)", [ID, ALICE, BOB]),
        logs.CreatorRecorded(ID, ALICE, BOB),
    ),
    (
        ContractKind.MARKET_REGISTRY,
        a_log("MetadataSet(bytes32,address,string)", [ID, ALICE], ["string"], ["x" * 43]),
        logs.MetadataSet(ID, ALICE, "x" * 43),
    ),
    (
        ContractKind.SAFE_FACTORY,
        a_log("ProxyCreation(address,address)", [], ["address", "address"], [ALICE, BOB]),
        logs.SafeCreated(ALICE, BOB),
    ),
    (
        ContractKind.SAFE,
        a_log("ExecutionSuccess(bytes32,uint256)", [], ["bytes32", "uint256"], [ID_BYTES, 0]),
        logs.SafeExecuted(ID, is_success=True),
    ),
    (
        ContractKind.SAFE,
        a_log("ExecutionFailure(bytes32,uint256)", [], ["bytes32", "uint256"], [ID_BYTES, 0]),
        logs.SafeExecuted(ID, is_success=False),
    ),
]


@pytest.mark.parametrize(("kind", "raw", "expected"), CASES)
def test_a_log_of_a_contract_is_decoded(
    kind: ContractKind, raw: tuple[list[str], str], expected: ChainLog
) -> None:
    assert decode_log(kind, *raw) == expected


@pytest.mark.parametrize(("kind", "raw", "expected"), CASES)
def test_the_same_log_of_another_kind_of_contract_is_not_decoded(
    kind: ContractKind, raw: tuple[list[str], str], expected: ChainLog
) -> None:
    others = [other for other in ContractKind if other is not kind]
    assert expected not in [decode_log(other, *raw) for other in others]
    assert raw[0][0] in topics_of(kind)


@pytest.mark.parametrize(("kind", "raw", "expected"), CASES)
def test_a_log_of_another_length_is_not_decoded(
    kind: ContractKind, raw: tuple[list[str], str], expected: ChainLog
) -> None:
    topics, data = raw
    misshapen = [
        (topics, data + "00" * 32),
        (topics, data + "00"),
        (topics, data[:-64] if len(data) > 2 else data + "0"),
        (topics[:-1], data),
        ([*topics, topics[-1]], data),
        ([], data),
        ([topics[0][:-2], *topics[1:]], data),
        ([*topics[:-1], topics[-1][:-2] + "zz"], data),
        (topics, data + "zz"),
    ]
    assert [decode_log(kind, *log) for log in misshapen] == [None] * len(misshapen), expected


WIDE = "0x" + "01" + "00" * 31


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        # A word that is not an address.
        (
            ContractKind.COLLATERAL,
            a_log("Transfer(address,address,uint256)", [WIDE, BOB], ["uint256"], [9]),
        ),
        # Neither true nor false; neither side.
        (
            ContractKind.CONDITIONAL_TOKENS,
            a_log("ApprovalForAll(address,address,bool)", [ALICE, BOB], ["uint256"], [2]),
        ),
        (
            ContractKind.EXCHANGE,
            a_log(FILLED_V2, [ID, ALICE, BOB], V2_KINDS, [2, TOKEN, 1, 1, 1, ID_BYTES, ID_BYTES]),
        ),
        (
            ContractKind.EXCHANGE,
            a_log(MATCHED_V2, [ID, ALICE], V2_KINDS[:4], [3, TOKEN, 40, 100]),
        ),
        # Collateral against collateral, and a token against a token.
        (
            ContractKind.EXCHANGE,
            a_log(FILLED_V1, [ID, ALICE, BOB], FIVE_NUMBERS, [0, 0, 40, 100, 1]),
        ),
        (
            ContractKind.EXCHANGE,
            a_log(FILLED_V1, [ID, ALICE, BOB], FIVE_NUMBERS, [TOKEN, 3, 40, 100, 1]),
        ),
        # Lists of different lengths, and a list with another length than its count.
        (
            ContractKind.CONDITIONAL_TOKENS,
            a_log(BATCH, [ALICE, BOB, CAROL], ["uint256[]", "uint256[]"], [[1, 2], [5]]),
        ),
        (
            ContractKind.CONDITIONAL_TOKENS,
            a_log(RESOLVED, [ID, ALICE, OTHER_ID], ["uint256", "uint256[]"], [3, [1, 0]]),
        ),
        # A list at another word, and one beyond the end.
        (
            ContractKind.CONDITIONAL_TOKENS,
            a_log(RESOLVED, [ID, ALICE, OTHER_ID], FIVE_NUMBERS, [2, 96, 2, 1, 0]),
        ),
        (
            ContractKind.CONDITIONAL_TOKENS,
            a_log(RESOLVED, [ID, ALICE, OTHER_ID], FIVE_NUMBERS[:4], [2, 64, 2**250, 1]),
        ),
        # Bits after a text, and a text that is not UTF-8.
        (
            ContractKind.MARKET_REGISTRY,
            a_log("MetadataSet(bytes32,address,string)", [ID, ALICE], FIVE_NUMBERS[:3], [32, 1, 1]),
        ),
        (
            ContractKind.MARKET_REGISTRY,
            a_log("MetadataSet(bytes32,address,string)", [ID, ALICE], ["bytes"], [b"\xff\xfe"]),
        ),
        # An unknown signature.
        (ContractKind.EXCHANGE, a_log("TradingPaused(address)", [ALICE])),
    ],
)
def test_a_log_that_no_contract_emits_is_not_decoded(
    kind: ContractKind, raw: tuple[list[str], str]
) -> None:
    assert decode_log(kind, *raw) is None


@pytest.mark.case("E-03")
@given(
    kind=st.sampled_from(list(ContractKind)),
    case=st.sampled_from(CASES),
    topics=st.lists(st.binary(max_size=40).map(lambda raw: "0x" + raw.hex()), max_size=4),
    data=st.binary(max_size=400).map(lambda raw: "0x" + raw.hex()) | st.text(max_size=20),
)
def test_no_log_raises_an_error(
    kind: ContractKind,
    case: tuple[ContractKind, tuple[list[str], str], ChainLog],
    topics: list[str],
    data: str,
) -> None:
    _, (valid_topics, valid_data), _ = case
    assert decode_log(kind, topics, data) is None
    decode_log(kind, valid_topics, data)
    decode_log(kind, [valid_topics[0], *topics], valid_data)
