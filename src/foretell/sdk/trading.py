"""The client of a trader: API credentials from a wallet's signature, then signed orders."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from foretell.domain.exchange.order import (
    OrderType,
    OrderV2Fields,
    Side,
    SignatureType,
    SignedOrder,
)
from foretell.domain.exchange.profiles import Separators
from foretell.domain.exchange.signing.wallet_signatures import wallet_digest, wallet_signature
from foretell.domain.values.eip712 import Eip712Domain, address_of_key, sign_digest
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    ZERO_BYTES32,
    Address,
    checksum_address,
)
from foretell.sdk.authentication import AuthenticatedClient
from foretell.sdk.http import HttpClient
from foretell.sdk.signing.signers import KeySigner


@dataclass(frozen=True, slots=True)
class Wallet:
    """A key with the wallet that it trades for: its own address, a Safe, a proxy or a deposit wallet."""

    private_key: bytes
    safe: Address | None = None
    deposit_wallet: Address | None = None
    proxy_wallet: Address | None = None

    @property
    def address(self) -> Address:
        """The address that signs."""
        return address_of_key(self.private_key)

    @property
    def maker(self) -> Address:
        """The address that pays and receives."""
        return self.deposit_wallet or self.proxy_wallet or self.safe or self.address

    @property
    def signature_type(self) -> SignatureType:
        """The signature type of orders of this wallet."""
        if self.deposit_wallet is not None:
            return SignatureType.CONTRACT
        if self.proxy_wallet is not None:
            return SignatureType.PROXY
        return SignatureType.EOA if self.safe is None else SignatureType.SAFE


class TradingClient(AuthenticatedClient):
    """One key at the trading API that signs orders in a known domain, as fast as it can.

    `Trader` is for everything else: it asks the installation for domains, nonces and rules.
    """

    def __init__(
        self,
        http: HttpClient,
        wallet: Wallet,
        chain_id: int,
        separators: Separators,
        now_s: Callable[[], int],
        l1_domain: Eip712Domain | None = None,
    ) -> None:
        super().__init__(http, KeySigner(wallet.private_key), chain_id, now_s, l1_domain)
        self.wallet = wallet
        self._separators = separators

    def for_exchange(self, separators: Separators) -> "TradingClient":
        """Return a client with the same wallet and credentials for the orders of another exchange."""
        client = TradingClient(
            self.http, self.wallet, self.chain_id, separators, self._now_s, self._l1_domain
        )
        client.credentials = self.credentials
        return client

    def sign_order(
        self, token_id: str, side: Side, size_units: int, collateral_units: int, salt: int
    ) -> SignedOrder:
        """Return an order for this many token units at this much collateral, signed.

        It is of version 1 of the struct, and that of a deposit wallet of version 2.
        """
        is_buy = side is Side.BUY
        is_wallet = self.wallet.deposit_wallet is not None
        profile = self._separators.first_of_version(2) if is_wallet else 0
        assert profile is not None, "a deployment with deposit wallets accepts version 2"
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
            profile=profile,
            signature=b"",
            v2=OrderV2Fields(self._now_s() * 1000, ZERO_BYTES32, ZERO_BYTES32)
            if is_wallet
            else None,
        )
        return msgspec.structs.replace(order, signature=self._signature(order))

    def _signature(self, order: SignedOrder) -> bytes:
        key = self.wallet.private_key
        if order.v2 is None:
            return sign_digest(bytes.fromhex(self._separators.order_id(order)[2:]), key)
        separator = self._separators.by_profile[order.profile]
        struct_hash = self._separators.struct_hash(order)
        digest = wallet_digest(separator, struct_hash, order.maker, self.chain_id)
        return wallet_signature(sign_digest(digest, key), separator, struct_hash)

    async def place(self, order: SignedOrder, order_type: OrderType = OrderType.GTC) -> Any:
        """Place a signed order and return the answer."""
        assert self.credentials is not None
        body = order_body(order, self.credentials.key_id, order_type)
        return await self.send("POST", "/order", body)


def order_body(order: SignedOrder, owner: str, order_type: OrderType) -> dict[str, Any]:
    """Return the body of POST /order."""
    is_wallet = order.signature_type is SignatureType.CONTRACT
    fields: dict[str, Any] = {
        "salt": int(order.salt),
        "maker": checksum_address(order.maker),
        "signer": checksum_address(order.maker if is_wallet else order.signer),
        "tokenId": order.token_id,
        "makerAmount": str(order.maker_amount),
        "takerAmount": str(order.taker_amount),
        "expiration": str(order.expiration_s),
        "side": order.side.name,
        "signatureType": int(order.signature_type),
        "signature": "0x" + order.signature.hex(),
    }
    if order.v2 is None:
        fields |= {
            "taker": order.taker,
            "nonce": str(order.nonce),
            "feeRateBps": str(order.fee_rate_bps),
        }
    else:
        fields |= {
            "timestamp": str(order.v2.timestamp_ms),
            "metadata": order.v2.metadata,
            "builder": order.v2.builder,
        }
    return {"order": fields, "owner": owner, "orderType": order_type.value}
