"""The client of a trader: API credentials from a wallet's signature, then signed orders."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from foretell.domain.exchange.order import OrderType, Side, SignatureType, SignedOrder
from foretell.domain.exchange.profiles import Separators
from foretell.domain.values.credentials import L1_DOMAIN_NAME
from foretell.domain.values.eip712 import address_of_key, sign_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, checksum_address
from foretell.sdk.authentication import AuthenticatedClient, usual_l1_domain
from foretell.sdk.http import HttpClient
from foretell.sdk.signing.signers import KeySigner


@dataclass(frozen=True, slots=True)
class Wallet:
    """A key with the wallet that it trades for: its own address or a Safe."""

    private_key: bytes
    safe: Address | None = None

    @property
    def address(self) -> Address:
        """The address that signs."""
        return address_of_key(self.private_key)

    @property
    def maker(self) -> Address:
        """The address that pays and receives."""
        return self.safe or self.address

    @property
    def signature_type(self) -> SignatureType:
        """The signature type of orders of this wallet."""
        return SignatureType.EOA if self.safe is None else SignatureType.SAFE


class TradingClient(AuthenticatedClient):
    """One key at the trading API that signs orders in a known domain, as fast as it can.

    `Trader` is for everything else: it asks the installation for domains, nonces and rules.
    """

    def __init__(  # noqa: PLR0913 - the last two only where the operator's domain is another
        self,
        http: HttpClient,
        wallet: Wallet,
        chain_id: int,
        separators: Separators,
        now_s: Callable[[], int],
        l1_domain: str = L1_DOMAIN_NAME,
        *,
        l1_contract: Address | None = None,
    ) -> None:
        domain = usual_l1_domain(chain_id, l1_domain)._replace(verifying_contract=l1_contract)
        super().__init__(http, KeySigner(wallet.private_key), chain_id, now_s, domain)
        self.wallet = wallet
        self._separators = separators

    def for_exchange(self, separators: Separators) -> "TradingClient":
        """Return a client with the same wallet and credentials for the orders of another exchange."""
        client = TradingClient(
            self.http,
            self.wallet,
            self.chain_id,
            separators,
            self._now_s,
            self._l1_domain.name or L1_DOMAIN_NAME,
            l1_contract=self._l1_domain.verifying_contract,
        )
        client.credentials = self.credentials
        return client

    def sign_order(
        self, token_id: str, side: Side, size_units: int, collateral_units: int, salt: int
    ) -> SignedOrder:
        """Return an order for this many token units at this much collateral, signed."""
        is_buy = side is Side.BUY
        order = SignedOrder(
            salt=str(salt),
            maker=self.wallet.maker,
            signer=self.wallet.address,
            taker=ZERO_ADDRESS,
            token_id=token_id,
            maker_amount=collateral_units if is_buy else size_units,
            taker_amount=size_units if is_buy else collateral_units,
            expiration_s=0,
            nonce=0,
            fee_rate_bps=0,
            side=side,
            signature_type=self.wallet.signature_type,
            profile=0,
            signature=b"",
        )
        digest = bytes.fromhex(self._separators.order_id(order)[2:])
        signature = sign_digest(digest, self.wallet.private_key)
        return msgspec.structs.replace(order, signature=signature)

    async def place(self, order: SignedOrder, order_type: OrderType = OrderType.GTC) -> Any:
        """Place a signed order and return the answer."""
        assert self.credentials is not None
        body = order_body(order, self.credentials.key_id, order_type)
        return await self.send("POST", "/order", body)


def order_body(order: SignedOrder, owner: str, order_type: OrderType) -> dict[str, Any]:
    """Return the body of POST /order."""
    return {
        "order": {
            "salt": int(order.salt),
            "maker": checksum_address(order.maker),
            "signer": checksum_address(order.signer),
            "taker": order.taker,
            "tokenId": order.token_id,
            "makerAmount": str(order.maker_amount),
            "takerAmount": str(order.taker_amount),
            "expiration": str(order.expiration_s),
            "nonce": str(order.nonce),
            "feeRateBps": str(order.fee_rate_bps),
            "side": order.side.name,
            "signatureType": int(order.signature_type),
            "signature": "0x" + order.signature.hex(),
        },
        "owner": owner,
        "orderType": order_type.value,
    }
