import pytest
from tests.contracts.evm import Log, Receipt, word_of_address
from tests.contracts.market import Fill, World
from tests.contracts.signing import OWN_V1, OWN_V2, UNIT

BUILDER = b"\x0b" * 32
METADATA = b"\x0d" * 32
V1 = "OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)"
V2 = "OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,bytes32,bytes32)"
MATCHED_V1 = "OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)"
MATCHED_V2 = "OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)"

# The topics of the ecosystem's indexers.
FILLED_V1_TOPIC = "d0a08e8c493f9c94f29311604c9de1b4e8c8d4c06bd0c789af57f2d65bfec0f6"
MATCHED_V1_TOPIC = "63bf4d16b7fa898ef4c4b2b6d90fd201e9c56313b65638af6088d149d2ce956c"
FILLED_V2_TOPIC = "d543adfd945773f1a62f74f0ee55a5e3b9b1a28262980ba90b1a89f2ea84d8ee"
MATCHED_V2_TOPIC = "174b3811690657c217184f89418266767c87e4805d09680c39fc9c031c0cab7c"


def own_logs(world: World, receipt: Receipt) -> list[Log]:
    return [log for log in receipt.logs if log.address == world.exchange.address]


def test_a_match_of_v1_orders_is_logged_in_v1_form(world: World) -> None:
    bid = world.buy(world.taker, world.yes, 100 * UNIT, 60)
    ask = world.sell(world.makers[0], world.yes, 100 * UNIT, 50)
    receipt = world.match(bid, [ask], Fill(60 * UNIT, (100 * UNIT,)))
    assert world.exchange.logs(receipt, V1) == [
        {
            "orderHash": world.hash(ask),
            "maker": ask.maker,
            "taker": bid.maker,
            "makerAssetId": world.yes,
            "takerAssetId": 0,
            "makerAmountFilled": 100 * UNIT,
            "takerAmountFilled": 50 * UNIT,
            "fee": 0,
        },
        {
            "orderHash": world.hash(bid),
            "maker": bid.maker,
            "taker": world.exchange.address,
            "makerAssetId": 0,
            "takerAssetId": world.yes,
            "makerAmountFilled": 50 * UNIT,
            "takerAmountFilled": 100 * UNIT,
            "fee": 0,
        },
    ]
    assert world.exchange.logs(receipt, MATCHED_V1) == [
        {
            "takerOrderHash": world.hash(bid),
            "takerOrderMaker": bid.maker,
            "makerAssetId": 0,
            "takerAssetId": world.yes,
            "makerAmountFilled": 50 * UNIT,
            "takerAmountFilled": 100 * UNIT,
        }
    ]
    assert world.exchange.logs(receipt, V2) == []


def test_a_match_of_v2_orders_is_logged_in_v2_form(world: World) -> None:
    world.allow_fees(100)
    marks = {"profile": OWN_V2, "builder": BUILDER, "metadata": METADATA, "timestamp": 1}
    ask = world.sell(world.taker, world.yes, 100 * UNIT, 50, **marks)
    bid = world.buy(world.makers[0], world.yes, 100 * UNIT, 60, **marks)
    receipt = world.match(ask, [bid], Fill(100 * UNIT, (60 * UNIT,), 3, (2,)))
    assert world.exchange.logs(receipt, V2) == [
        {
            "orderHash": world.hash(bid),
            "maker": bid.maker,
            "taker": ask.maker,
            "side": 0,
            "tokenId": world.yes,
            "makerAmountFilled": 60 * UNIT,
            "takerAmountFilled": 100 * UNIT,
            "fee": 2,
            "builder": BUILDER,
            "metadata": METADATA,
        },
        {
            "orderHash": world.hash(ask),
            "maker": ask.maker,
            "taker": world.exchange.address,
            "side": 1,
            "tokenId": world.yes,
            "makerAmountFilled": 100 * UNIT,
            "takerAmountFilled": 60 * UNIT,
            "fee": 3,
            "builder": BUILDER,
            "metadata": METADATA,
        },
    ]
    assert world.exchange.logs(receipt, MATCHED_V2) == [
        {
            "takerOrderHash": world.hash(ask),
            "takerOrderMaker": ask.maker,
            "side": 1,
            "tokenId": world.yes,
            "makerAmountFilled": 100 * UNIT,
            "takerAmountFilled": 60 * UNIT,
        }
    ]
    assert world.exchange.logs(receipt, V1) == []


@pytest.mark.parametrize(
    ("taker", "maker", "topics"),
    [
        (OWN_V1, OWN_V1, [FILLED_V1_TOPIC, FILLED_V1_TOPIC, MATCHED_V1_TOPIC]),
        (OWN_V1, OWN_V2, [FILLED_V2_TOPIC, FILLED_V1_TOPIC, MATCHED_V1_TOPIC]),
        (OWN_V2, OWN_V1, [FILLED_V1_TOPIC, FILLED_V2_TOPIC, MATCHED_V2_TOPIC]),
        (OWN_V2, OWN_V2, [FILLED_V2_TOPIC, FILLED_V2_TOPIC, MATCHED_V2_TOPIC]),
    ],
)
def test_each_order_is_logged_in_the_form_of_its_struct_and_in_order(
    world: World, taker: int, maker: int, topics: list[str]
) -> None:
    bid = world.buy(world.taker, world.yes, UNIT, 50, profile=taker)
    ask = world.sell(world.makers[0], world.yes, UNIT, 50, profile=maker)
    receipt = world.match(bid, [ask], Fill(UNIT // 2, (UNIT,)))
    logs = own_logs(world, receipt)
    assert [log.topics[0].hex() for log in logs] == topics
    assert logs[0].topics[1:] == (
        world.hash(ask),
        word_of_address(ask.maker),
        word_of_address(bid.maker),
    )


@pytest.mark.parametrize(
    ("signature", "topic"),
    [
        (
            "TokenRegistered(uint256,uint256,bytes32)",
            "bc9a2432e8aeb48327246cddd6e872ef452812b4243c04e6bfb786a2cd8faf0d",
        ),
        (V1, FILLED_V1_TOPIC),
        (V2, FILLED_V2_TOPIC),
        (MATCHED_V1, MATCHED_V1_TOPIC),
        (MATCHED_V2, MATCHED_V2_TOPIC),
    ],
)
def test_the_abi_has_the_topics_of_known_indexers(world: World, signature: str, topic: str) -> None:
    assert world.exchange.topic(signature).hex() == topic
