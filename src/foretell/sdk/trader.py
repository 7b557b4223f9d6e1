"""The trading API: markets' data for everyone, orders and trades for a signer.

Domains, contracts, nonces and the chain come from `GET /auth/account`, so a client trades on any
installation. Prices, sizes and budgets are decimal text; nothing is rounded.
"""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, Self

import msgspec

from foretell.domain.exchange.order import Side
from foretell.domain.exchange.signing.wallet_signatures import wallet_signature
from foretell.domain.values.credentials import L1_DOMAIN_NAME
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    Address,
    checksum_address,
    parse_address,
)
from foretell.sdk.authentication import AuthenticatedClient, usual_l1_domain
from foretell.sdk.http import POLL_S, HttpClient, wait_for
from foretell.sdk.orders import (
    AccountTerms,
    CanceledOrders,
    Funds,
    MarketTerms,
    OpenOrder,
    OrderBook,
    OrderDraft,
    OwnTrade,
    PlacedOrder,
    SignedBody,
)
from foretell.sdk.signing.signers import Signer
from foretell.sdk.signing.typed_data import TypedData, Value, order_data, wallet_order_data

LAST_PAGE: Final = "LTE="
SALT_BYTES: Final = 6
"""A salt fits the integers of every JSON reader."""
SETTLED_S: Final = 120.0
MS_PER_S: Final = 1_000
DECIMALS: Final = frozenset(
    ("tokenId", "makerAmount", "takerAmount", "expiration", "nonce", "feeRateBps", "timestamp")
)
"""The fields of an order that are decimal text in its body."""


class MarketData:
    """The public routes of the trading API."""

    def __init__(self, http: HttpClient) -> None:
        self.http = http
        self._terms_by_token: dict[str, MarketTerms] = {}

    async def server_time(self) -> int:
        """Return the server's time in seconds."""
        return int(await self.http.get("/time"))

    async def book(self, token_id: str) -> OrderBook:
        """Return the book of a token."""
        return msgspec.convert(await self.http.get("/book", token_id=token_id), OrderBook)

    async def midpoint(self, token_id: str) -> str:
        """Return the price half-way between the best bid and the best ask."""
        return str((await self.http.get("/midpoint", token_id=token_id))["mid"])

    async def price(self, token_id: str, side: Side) -> str:
        """Return the price that a taker of this side gets."""
        return str((await self.http.get("/price", token_id=token_id, side=side.name))["price"])

    async def price_history(self, token_id: str, interval: str = "max") -> list[dict[str, Any]]:
        """Return the points of a token's price, each with `t` in seconds and `p`."""
        answer = await self.http.get("/prices-history", market=token_id, interval=interval)
        return list(answer["history"])

    async def market(self, condition_id: str) -> dict[str, Any]:
        """Return the record of a market."""
        return dict(await self.http.get(f"/markets/{condition_id}"))

    async def market_terms(self, token_id: str) -> MarketTerms:
        """Return the rules for orders of a token; the exchange and the fee of a token never change."""
        if token_id not in self._terms_by_token:
            book = await self.book(token_id)
            fee = await self.http.get("/fee-rate", token_id=token_id)
            terms = MarketTerms(book.tick_size, book.neg_risk, int(fee["base_fee"]))
            self._terms_by_token[token_id] = terms
        return self._terms_by_token[token_id]


async def fetch_account(http: HttpClient, address: Address) -> AccountTerms:
    """Return the wallets, chain and exchanges for an address."""
    answer = await http.get("/auth/account", address=checksum_address(address))
    return msgspec.convert(answer, AccountTerms)


class Trader(AuthenticatedClient):
    """A signer with an API key, trading for its own address or one of its wallets."""

    struct_version: int | None = None
    """The version of the order struct to sign; None for the first that the exchange and the wallet accept.

    An order with a builder or metadata is signed by version 2 then.
    """

    def __init__(
        self,
        http: HttpClient,
        signer: Signer,
        account: AccountTerms,
        now_s: Callable[[], int],
        l1_domain: str = L1_DOMAIN_NAME,
    ) -> None:
        domain = account.l1_domain() or usual_l1_domain(account.chain_id, l1_domain)
        super().__init__(http, signer, account.chain_id, now_s, domain)
        self.account = account
        self.markets = MarketData(http)
        self.wallet = account.wallet("eoa")

    @classmethod
    async def open(
        cls,
        http: HttpClient,
        signer: Signer,
        now_s: Callable[[], int],
        *,
        wallet: str = "eoa",
        l1_domain: str = L1_DOMAIN_NAME,
    ) -> Self:
        """Return the trader of a signer, with a new or its earlier API key.

        `wallet` is `eoa`, `safe`, `proxy wallet` or `deposit wallet`.
        """
        account = await fetch_account(http, signer.address)
        trader = cls(http, signer, account, now_s, l1_domain)
        trader.wallet = account.wallet(wallet)
        await trader.create_key()
        return trader

    @property
    def maker(self) -> Address:
        """The wallet that pays and receives."""
        return parse_address(self.wallet.address)

    async def sign(self, draft: OrderDraft) -> SignedBody:
        """Return the signed body of an order, with a new salt: place it as often as needed."""
        assert self.credentials is not None
        terms = await self.markets.market_terms(draft.token_id)
        exchange = self.account.exchange(is_neg_risk=terms.is_neg_risk)
        version = exchange.struct_version_for(
            self.wallet, self.struct_version, needs_builder=draft.needs_builder
        )
        message = self._order_fields(draft)
        if version == 1:
            message |= {
                "taker": ZERO_ADDRESS,
                "expiration": draft.expires_at_s,
                "nonce": int(exchange.nonces[self.wallet.address]),
                "feeRateBps": terms.fee_rate_bps,
            }
        else:
            signed_at_ms = self._now_s() * MS_PER_S
            message |= {
                "timestamp": signed_at_ms,
                "metadata": draft.metadata,
                "builder": draft.builder,
            }
        typed = order_data(exchange.domain(version), message, version)
        signature = await self._signature(typed)
        order = {name: str(each) if name in DECIMALS else each for name, each in message.items()}
        order |= {
            "side": draft.side.name,
            "expiration": str(draft.expires_at_s),
            "signature": "0x" + signature.hex(),
        }
        body = {
            "order": order,
            "owner": self.credentials.key_id,
            "orderType": draft.order_type.value,
            "postOnly": draft.is_post_only,
        }
        return SignedBody("0x" + typed.digest().hex(), body)

    def _order_fields(self, draft: OrderDraft) -> dict[str, Value]:
        """Return the fields that every version of the struct has. A deposit wallet is its own signer."""
        amounts, is_contract = draft.amounts(), self.wallet.is_contract
        signer = self.maker if is_contract else self.signer.address
        return {
            "salt": int.from_bytes(os.urandom(SALT_BYTES), "big"),
            "maker": self.wallet.address,
            "signer": checksum_address(signer),
            "tokenId": int(draft.token_id),
            "makerAmount": amounts.maker_units,
            "takerAmount": amounts.taker_units,
            "side": int(draft.side),
            "signatureType": self.wallet.signature_type,
        }

    async def _signature(self, typed: TypedData) -> bytes:
        """Return the signature of an order: that of the signer, nested for a deposit wallet."""
        if not self.wallet.is_contract:
            return await self.signer.sign_typed(typed)
        nested = wallet_order_data(typed, self.chain_id, self.maker)
        own = await self.signer.sign_typed(nested)
        return wallet_signature(own, typed.domain.separator(), typed.struct_hash())

    async def place(self, draft: OrderDraft) -> PlacedOrder:
        """Place an order. If no answer comes, the same signed order is sent again: it exists once."""
        return await self.place_signed(await self.sign(draft))

    async def place_signed(self, signed: SignedBody) -> PlacedOrder:
        """Place an order that was signed before."""
        return msgspec.convert(await self.send("POST", "/order", signed.body), PlacedOrder)

    async def place_all(self, drafts: Sequence[OrderDraft]) -> list[PlacedOrder]:
        """Place up to 15 orders in one request; each is accepted or refused by itself."""
        signed = [await self.sign(draft) for draft in drafts]
        answer = await self.send("POST", "/orders", [each.body for each in signed])
        return msgspec.convert(answer, list[PlacedOrder])

    async def buy(self, token_id: str, price: str, size: str) -> PlacedOrder:
        """Bid for tokens at a price; the rest stays in the book."""
        return await self.place(
            OrderDraft(token_id=token_id, side=Side.BUY, price=price, size=size)
        )

    async def sell(self, token_id: str, price: str, size: str) -> PlacedOrder:
        """Offer tokens at a price; the rest stays in the book."""
        return await self.place(
            OrderDraft(token_id=token_id, side=Side.SELL, price=price, size=size)
        )

    async def validate(self, draft: OrderDraft) -> dict[str, Any]:
        """Return the result of every rule for an order, which is not placed."""
        signed = await self.sign(draft)
        return dict(await self.send("POST", "/order/validate", signed.body))

    async def cancel(self, *order_ids: str) -> CanceledOrders:
        """Cancel orders of one's own."""
        return msgspec.convert(
            await self.send("DELETE", "/orders", list(order_ids)), CanceledOrders
        )

    async def cancel_all(self) -> CanceledOrders:
        """Cancel every order of the signer's wallets."""
        return msgspec.convert(await self.send("DELETE", "/cancel-all", None), CanceledOrders)

    async def cancel_market(self, condition_id: str) -> CanceledOrders:
        """Cancel the orders in a market."""
        body = {"market": condition_id}
        return msgspec.convert(
            await self.send("DELETE", "/cancel-market-orders", body), CanceledOrders
        )

    async def order(self, order_id: str) -> OpenOrder:
        """Return any order that the signer ever placed."""
        return msgspec.convert(await self.get(f"/data/order/{order_id}"), OpenOrder)

    async def open_orders(self, /, **filters: str) -> list[OpenOrder]:
        """Return the orders that are in books; filters are `market`, `asset_id` and `id`."""
        rows = [each async for each in self._rows("/data/orders", filters)]
        return msgspec.convert(rows, list[OpenOrder])

    async def trades(self, /, **filters: str) -> list[OwnTrade]:
        """Return the trades of one's own, newest first; filters as in `GET /data/trades`."""
        rows = [each async for each in self._rows("/data/trades", filters)]
        return msgspec.convert(rows, list[OwnTrade])

    async def _rows(self, path: str, filters: dict[str, str]) -> AsyncIterator[Any]:
        """Yield the entries of all pages."""
        cursor = ""
        while cursor != LAST_PAGE:
            page = await self.get(path, **filters, **({"next_cursor": cursor} if cursor else {}))
            for row in page["data"]:
                yield row
            cursor = page["next_cursor"]

    async def wait_until_settled(
        self, order_id: str, deadline_s: float = SETTLED_S
    ) -> list[OwnTrade]:
        """Return the trades of a taker order once the chain has settled or refused each of them."""

        async def fetch_final() -> list[OwnTrade] | None:
            found = [each for each in await self.trades() if each.taker_order_id == order_id]
            is_final = found and all(each.status in {"CONFIRMED", "FAILED"} for each in found)
            return found if is_final else None

        return await wait_for("the settlement of the order", fetch_final, deadline_s, POLL_S)

    async def collateral(self) -> Funds:
        """Return the collateral that the wallet may trade with."""
        return await self._funds(asset_type="COLLATERAL")

    async def token_funds(self, token_id: str) -> Funds:
        """Return the tokens that the wallet may trade with."""
        return await self._funds(asset_type="CONDITIONAL", token_id=token_id)

    async def _funds(self, **query: str) -> Funds:
        kind = self.wallet.signature_type
        answer = await self.get("/balance-allowance", signature_type=kind, **query)
        return msgspec.convert(answer, Funds)

    async def heartbeat(self, heartbeat_id: str = "") -> str:
        """Keep this key's orders alive, and return the id of the next heartbeat."""
        answer = await self.send("POST", "/heartbeats", {"heartbeat_id": heartbeat_id})
        return str(answer["heartbeat_id"])
