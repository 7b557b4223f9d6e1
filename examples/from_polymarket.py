"""A bot written for Polymarket, moved: another address, and nothing else (`pip install py-clob-client`).

This works in the sandbox, whose chain and contracts py-clob-client knows. On an exchange with its own
chain, use `foretell.sdk`: the second half of this program is the same bot with it.
"""

from py_clob_client.client import ClobClient
from py_clob_client.clob_types import OrderArgs

import sandbox
from foretell.sdk.blocking import connect

account = sandbox.signer("trader", 5)
client = ClobClient(
    sandbox.ready()["clob"],  # was: https://clob.polymarket.com
    chain_id=sandbox.ready()["chainId"],  # was: 137
    key="0x" + account.private_key.hex(),
)
client.set_api_creds(client.create_or_derive_api_creds())
token = sandbox.ready()["market"]["tokenYes"]
order = client.create_order(OrderArgs(token_id=token, price=0.07, size=10, side="BUY"))
print("py-clob-client:", client.post_order(order)["status"])
client.cancel_all()

with connect(sandbox.urls(), account) as foretell:
    placed = foretell.trader.buy(token, price="0.07", size="10")
    print("foretell.sdk:", placed.status)
    foretell.trader.cancel(placed.order_id)
