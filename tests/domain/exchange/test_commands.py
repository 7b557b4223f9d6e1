"""Commands of the engine and their encoding in the journal."""

import base64
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.orders.version_2 import a_builder, a_v2_buy, some_v2_fields
from tests.rigs.values import (
    EXCHANGE,
    NOW_MS,
    a_buy,
    a_placing,
    a_sell,
    a_spending,
    a_word,
    an_address,
    an_asset,
    an_observation,
    an_open_market,
)

from foretell.domain.exchange.allocations import AllocationTotal, total_of
from foretell.domain.exchange.commands import (
    AllowanceSeen,
    BalanceSeen,
    BarWallet,
    CancelOrders,
    CancelSeen,
    ChangeTick,
    Command,
    DelayMarket,
    ExpireOrders,
    HaltMarket,
    JoinTreasury,
    NonceSeen,
    PlaceOrder,
    ReleaseOrder,
    ResolveMarket,
    ReturnAllocation,
    SplitTrade,
    TakeAllocations,
    TradeSeen,
    decode_command,
    encode_command,
)
from foretell.domain.exchange.ledger import COLLATERAL, AssetId
from foretell.domain.exchange.order import OrderType
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.hexadecimal import Bytes32, address_of, word_of

COMMANDS: dict[str, Command] = {
    "open": an_open_market(),
    "tick": ChangeTick(NOW_MS, a_word("market"), 1_000),
    "resolve": ResolveMarket(NOW_MS, a_word("market")),
    "place": a_placing(a_buy()),
    "place, post-only": a_placing(a_sell(is_yes=False), is_post_only=True),
    "place, spending": a_placing(a_spending(), OrderType.FOK),
    "release": ReleaseOrder(*msgspec.structs.astuple(a_placing(a_buy()))),
    "delay": DelayMarket(NOW_MS, a_word("market"), 3_000),
    "cancel": CancelOrders(NOW_MS, an_address("alice"), (a_word("a"), a_word("b"))),
    "cancel nothing": CancelOrders(NOW_MS, an_address("alice"), ()),
    "expire": ExpireOrders(NOW_MS),
    "bar": BarWallet(NOW_MS, an_address("alice"), is_barred=True, cause="reverts when mined"),
    "halt": HaltMarket(NOW_MS, a_word("market"), is_halted=True),
    "end a bar": BarWallet(NOW_MS, an_address("alice"), is_barred=False, cause=""),
    "observe nothing": an_observation(),
    "observe": an_observation(
        [BalanceSeen(an_address("alice"), COLLATERAL, 2**63 - 1)],
        [AllowanceSeen(an_address("alice"), EXCHANGE, is_collateral=False, units=0)],
        [TradeSeen("id", TradeStatus.RETRYING, "0x")],
    ),
    "join": JoinTreasury(NOW_MS, "shard 1"),
    "take": TakeAllocations(
        NOW_MS, "shard 1", (AllocationTotal(an_address("alice"), total_of(2**70)),)
    ),
    "return": ReturnAllocation(
        NOW_MS, "shard 1", an_address("alice"), total_of(2**70), is_forced=True
    ),
    "observe a part": an_observation(
        [BalanceSeen(an_address("alice"), COLLATERAL, 5)], part=2, parts=3
    ),
    "observe the end of orders": an_observation(
        cancels=(CancelSeen(EXCHANGE, a_word("a")),),
        nonces=(NonceSeen(EXCHANGE, an_address("alice"), 7),),
    ),
    "split": SplitTrade(NOW_MS, "id", ((a_word("a"),), (a_word("b"), a_word("c"))), (a_word("a"),)),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_decoded_command_equals_the_encoded_one(name: str) -> None:
    command = COMMANDS[name]
    again = decode_command(encode_command(command))
    assert again == command
    assert type(again) is type(command)
    assert encode_command(again) == encode_command(command)


@pytest.mark.parametrize(
    "kind",
    [*get_args(Command), BalanceSeen, AllowanceSeen, TradeSeen],
    ids=lambda kind: kind.__name__,
)
def test_a_command_is_immutable(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    assert kind.__struct_config__.array_like


def test_every_command_has_its_own_tag() -> None:
    kinds = get_args(Command)
    tags = {kind.__struct_config__.tag for kind in kinds}
    assert tags == {
        "release",
        "delay",
        "open",
        "tick",
        "resolve",
        "place",
        "cancel",
        "expire",
        "observe",
        "join",
        "take",
        "return",
        "split",
        "bar",
        "halt",
    }
    assert {type(command) for command in COMMANDS.values()} == set(kinds)


UNITS = st.integers(0, 2**63 - 1)
ADDRESSES = st.binary(min_size=20, max_size=20).map(address_of)
WORDS = st.binary(min_size=32, max_size=32).map(word_of)
ASSETS = st.integers(0, 2**256 - 1).map(lambda number: AssetId(str(number)))


@given(
    at_ms=UNITS,
    salt=st.integers(0, 2**256 - 1),
    token=ASSETS,
    signature=st.binary(min_size=65, max_size=65),
    order_id=WORDS,
    owner=st.text(max_size=40),
)
def test_numbers_wider_than_an_integer_of_the_journal_are_decoded(**drawn: Any) -> None:
    order = a_buy(salt=str(drawn["salt"]), token_id=drawn["token"], signature=drawn["signature"])
    changes = {name: drawn[name] for name in ("at_ms", "order_id", "owner")}
    command = a_placing(order, **changes)
    assert decode_command(encode_command(command)) == command


@given(
    st.lists(st.builds(BalanceSeen, ADDRESSES, ASSETS, UNITS)),
    st.lists(st.builds(AllowanceSeen, ADDRESSES, ADDRESSES, st.booleans(), UNITS)),
    st.lists(st.builds(TradeSeen, st.text(), st.sampled_from(TradeStatus), st.text())),
)
def test_an_observation_is_decoded(
    balances: list[BalanceSeen], allowances: list[AllowanceSeen], trades: list[TradeSeen]
) -> None:
    command = an_observation(balances, allowances, trades)
    assert decode_command(encode_command(command)) == command


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc0",
        b"\x90",
        msgspec.msgpack.encode(["unknown", 1]),
        msgspec.msgpack.encode(["expire"]),
        msgspec.msgpack.encode(["expire", "now"]),
        encode_command(an_open_market())[:-1],
        encode_command(ExpireOrders(NOW_MS)) + b"\x00",
    ],
    ids=["nothing", "null", "empty", "unknown", "short", "mistyped", "cut", "longer"],
)
def test_bytes_that_are_no_command_are_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_command(raw)


@pytest.mark.case("J-07")
def test_an_older_reader_ignores_a_field_added_at_the_end() -> None:
    newer = msgspec.msgpack.encode(["expire", NOW_MS, None, [], "a field of tomorrow"])
    assert decode_command(newer) == ExpireOrders(NOW_MS)


# Bytes that the first release wrote: a journal is kept, so they must stay readable.
KEPT = {
    "open": (
        "l6RvcGVuzwAAAaMYXFAA2UIweDhiMzA5NTFkZjM4MGI2YjEwZGE3NDdlMTE2N2RkOGU0MGJmODYwNGM4"
        "OGM3NWIyNDVkYzE3Mjc2N2YzYjczMjDZTTE3NjAxMzQzNTg4NjQ5MzAyMDkxMzA5NTY4MjcwODA4Mzky"
        "NTg4ODkxNjMyNjQxNTcyMDA0MzUxNjE2ODQ3MjczMDk5OTU2MTYwNTE32U01MTQwNTc5NDM3MzQzMTQ5"
        "MDk1ODYyODk1NjQwNjA0NDk5MzE1MjMxMTQ5OTEzMjQ4NTIyMjQ4OTkyMTYxMjAyNzA0Njg4MTQ0MzU0"
        "NNkqMHhlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUxk2TOAExLQAA="
    ),
    "tick": (
        "lKR0aWNrzwAAAaMYXFAA2UIweDhiMzA5NTFkZjM4MGI2YjEwZGE3NDdlMTE2N2RkOGU0MGJmODYwNGM4"
        "OGM3NWIyNDVkYzE3Mjc2N2YzYjczMjDNA+g="
    ),
    "resolve": (
        "k6dyZXNvbHZlzwAAAaMYXFAA2UIweDhiMzA5NTFkZjM4MGI2YjEwZGE3NDdlMTE2N2RkOGU0MGJmODYw"
        "NGM4OGM3NWIyNDVkYzE3Mjc2N2YzYjczMjA="
    ),
    "place": (
        "mqVwbGFjZc8AAAGjGFxQANlCMHhlYWNiNzExNmZlODU0ZmVjZGI2Y2U5MGEyNTlhYzc4ZDViNDk3MTE4"
        "ZWI0YWNkMGE5ZjEyYjA1YjQ0YzI4OWY4nqEx2SoweDhkMzIxYTg4NTQ1YmUyOWZlNGZjMDlkYTc5Yzg0"
        "Y2MyMzUwODc5N2LZKjB4OGQzMjFhODg1NDViZTI5ZmU0ZmMwOWRhNzljODRjYzIzNTA4Nzk3YtkqMHgw"
        "MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw2U0xNzYwMTM0MzU4ODY0OTMwMjA5"
        "MTMwOTU2ODI3MDgwODM5MjU4ODg5MTYzMjY0MTU3MjAwNDM1MTYxNjg0NzI3MzA5OTk1NjE2MDUxN84A"
        "TEtAzgCYloAAAAAAAADEQTA26KMUE6VTYMU5kZ7xjVPgAEgB8OuM/xRfCgSZJLYbK2IkxiY45BKN38Ds"
        "DEZeIDkWGNzDinw9iUYbO5V59KQco0dUQ8LZMWtleSBvZiAweDhkMzIxYTg4NTQ1YmUyOWZlNGZjMDlk"
        "YTc5Yzg0Y2MyMzUwODc5N2LZQjB4OGIzMDk1MWRmMzgwYjZiMTBkYTc0N2UxMTY3ZGQ4ZTQwYmY4NjA0"
        "Yzg4Yzc1YjI0NWRjMTcyNzY3ZjNiNzMyMMOUMmTOAJiWgMA="
    ),
    "cancel": (
        "lKZjYW5jZWzPAAABoxhcUADZKjB4OGQzMjFhODg1NDViZTI5ZmU0ZmMwOWRhNzljODRjYzIzNTA4Nzk3"
        "YpLZQjB4M2FjMjI1MTY4ZGY1NDIxMmEyNWMxYzAxZmQzNWJlYmZlYTQwOGZkYWMyZTMxZGRkNmY4MGE0"
        "YmJmOWE1ZjFjYtlCMHhiNTU1M2RlMzE1ZTBlZGY1MDRkOTE1MGFmODJkYWZhNWM0NjY3ZmE2MThlZDBh"
        "NmYxOWM2OWI0MTE2NmM1NTEw"
    ),
    "expire": ("kqZleHBpcmXPAAABoxhcUAA="),
    "observe": (
        "l6dvYnNlcnZlzwAAAaMYXFAAAdlCMHgwNjQ5NTk5M2FkMDZjM2EyNmVmZmYzNGRjYjI4MWQxOThjN2Yz"
        "ZDA0ZDAxNjhhZDgxMjdmODVmNTQzY2IwNzBmkZPZKjB4OGQzMjFhODg1NDViZTI5ZmU0ZmMwOWRhNzlj"
        "ODRjYzIzNTA4Nzk3YqEwz3//////////kZTZKjB4OGQzMjFhODg1NDViZTI5ZmU0ZmMwOWRhNzljODRj"
        "YzIzNTA4Nzk3YtkqMHhlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUxZTFlMWUxwgCRk6Jp"
        "ZKhSRVRSWUlOR6IweA=="
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_commands_of_old_journals_are_decoded(name: str) -> None:
    assert decode_command(base64.b64decode(KEPT[name])) == COMMANDS[name]


def test_an_asset_is_a_decimal_string_and_collateral_is_zero() -> None:
    assert an_asset(is_yes=True).isdigit()
    assert COLLATERAL == "0"


@pytest.mark.parametrize(
    ("signed", "beside", "code"),
    [
        (None, None, None),
        (None, a_builder(2), a_builder(2)),
        (a_builder(0), None, None),
        (a_builder(0), a_builder(2), a_builder(2)),
        (a_builder(1), a_builder(2), a_builder(1)),
    ],
)
def test_the_journal_keeps_the_builder_of_an_order(
    signed: Bytes32 | None, beside: Bytes32 | None, code: Bytes32 | None
) -> None:
    """The code that the owner signed goes before that of the builder beside it."""
    order = a_buy() if signed is None else a_v2_buy(v2=some_v2_fields(builder=signed))
    placed = decode_command(encode_command(a_placing(order, builder=beside)))
    assert isinstance(placed, PlaceOrder)
    assert placed.builder_code == code


def test_an_order_from_before_there_were_builders_has_none() -> None:
    fields = msgspec.msgpack.decode(encode_command(a_placing(a_buy())))
    placed = decode_command(msgspec.msgpack.encode(fields[:-1]))
    assert placed == a_placing(a_buy())
