"""Orders of version 2 of the struct, signed by people or by the owners of contract wallets."""

from typing import Any, Final

import msgspec
from tests.rigs.values import (
    CHAIN_ID,
    EXCHANGE,
    NOW_MS,
    a_buy,
    a_deployment,
    a_key,
    a_sell,
    an_address,
    the_separators,
)

from foretell.domain.exchange.order import OrderV2Fields, SignatureType, SignedOrder
from foretell.domain.exchange.signing.wallet_signatures import wallet_digest, wallet_signature
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address, Bytes32

OWN_V2: Final = 3
POLYMARKET_V2: Final = 4
KUEST_V2: Final = 5
V2_PROFILES: Final = (OWN_V2, POLYMARKET_V2, KUEST_V2)


def some_v2_fields(**fields: Any) -> OrderV2Fields:
    """Return the fields of an order without metadata or builder."""
    return msgspec.structs.replace(OrderV2Fields(NOW_MS, ZERO_BYTES32, ZERO_BYTES32), **fields)


def a_v2_buy(signer: str = "alice", **fields: Any) -> SignedOrder:
    """Return a BUY of version 2, signed for the installation's own domain if no profile is given."""
    profile, v2 = fields.pop("profile", OWN_V2), fields.pop("v2", some_v2_fields())
    return a_buy(signer, **{"profile": profile, "v2": v2} | fields)


def a_v2_sell(signer: str = "bob", **fields: Any) -> SignedOrder:
    """Return a SELL of version 2, signed for the installation's own domain if no profile is given."""
    profile, v2 = fields.pop("profile", OWN_V2), fields.pop("v2", some_v2_fields())
    return a_sell(signer, **{"profile": profile, "v2": v2} | fields)


def a_deposit_wallet(owner: str, factory: int = 0) -> Address:
    """Return the deposit wallet of a person of the sandbox."""
    return a_deployment().deposit_wallets_of(an_address(owner))[factory]


def a_wallet_order(owner: str, wallet: Address | str, **fields: Any) -> SignedOrder:
    """Return a BUY of a contract wallet, or what else the fields say, signed by its owner.

    A wallet that is given by a name has the address of that name.
    """
    maker = wallet if wallet.startswith("0x") else an_address(wallet)
    exchange = fields.pop("exchange", EXCHANGE)
    unsigned = a_v2_buy(
        owner, maker=maker, signature_type=SignatureType.CONTRACT, signature=b"\0", **fields
    )
    return signed_by_wallet(unsigned, owner, exchange)


def signed_by_wallet(order: SignedOrder, owner: str, exchange: Address = EXCHANGE) -> SignedOrder:
    """Return an order of a contract wallet with the signature of its owner."""
    accepted = the_separators(exchange)
    separator = accepted.by_profile[order.profile]
    struct_hash = accepted.struct_hash(order)
    digest = wallet_digest(separator, struct_hash, order.maker, CHAIN_ID)
    signature = wallet_signature(sign_digest(digest, a_key(owner)), separator, struct_hash)
    return msgspec.structs.replace(order, signature=signature)


def a_builder(number: int = 1) -> Bytes32:
    """Return the code of a builder."""
    return Bytes32(f"0x{number:064x}")
