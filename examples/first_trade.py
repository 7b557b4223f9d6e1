"""A first trade: one trader bids for Yes, another buys No, and the chain settles it."""

import sandbox
from foretell.sdk.blocking import connect
from foretell.sdk.client import OrderDraft, OrderType, Side

with (
    connect(sandbox.urls(), sandbox.signer("trader", 1)) as alice,
    connect(sandbox.urls(), sandbox.signer("trader", 2)) as bob,
):
    market = alice.apis.discovery.market(sandbox.seeded_market())
    print(market.question)

    bid = alice.trader.buy(market.token("Yes"), price="0.40", size="10")
    print(f"Alice bids 0.40 for 10 Yes: {bid.status}")

    taken = bob.trader.place(
        OrderDraft(
            token_id=market.token("No"),
            side=Side.BUY,
            price="0.60",
            budget="6",  # collateral to spend: FOK and FAK buy by budget
            order_type=OrderType.FOK,
        )
    )
    print(f"Bob spends 6 on No: {taken.status}, he receives {taken.taking_amount} No")

    for trade in bob.trader.wait_until_settled(taken.order_id):
        print(f"the trade is {trade.status} in {trade.transaction_hash}")
