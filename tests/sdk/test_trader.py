"""The struct that signs an order: one with a builder is never placed without it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.scripted_api import ScriptedApi, a_client
from tests.rigs.values import NOW_S, a_key, an_address

from foretell.domain.errors.command import BuilderNotSigned, StructNotAccepted
from foretell.domain.exchange.order import Side
from foretell.domain.values.credentials import Credentials
from foretell.domain.values.hexadecimal import ZERO_BYTES32, checksum_address
from foretell.sdk.blocking import BlockingTrader, ClientLoop
from foretell.sdk.orders import (
    AccountTerms,
    DomainTerms,
    ExchangeTerms,
    MarketTerms,
    OrderDraft,
    WalletTerms,
)
from foretell.sdk.signing.signers import KeySigner
from foretell.sdk.trader import Trader

SIGNER = KeySigner(a_key("trader"))
OWN = checksum_address(SIGNER.address)
EXCHANGE = checksum_address(an_address("exchange"))
WORD = "0x" + "ab" * 32
ATTRIBUTED = [{"builder": WORD}, {"metadata": WORD}, {"builder": WORD, "metadata": WORD}]

pytestmark = pytest.mark.anyio


def a_draft(**fields: Any) -> OrderDraft:
    return OrderDraft(token_id="7", side=Side.BUY, price="0.40", size="10", **fields)


def an_account(*versions: int) -> AccountTerms:
    """Return the terms of an exchange that accepts these versions of the struct."""
    domains = [DomainTerms(each, "Exchange", str(each), 80002, EXCHANGE) for each in versions]
    wallet = WalletTerms("eoa", OWN, is_deployed=False, signature_type=0)
    exchange = ExchangeTerms(EXCHANGE, neg_risk=False, domains=domains, nonces={OWN: "0"})
    return AccountTerms(OWN, 80002, [wallet], [exchange])


@pytest.fixture
async def trader() -> AsyncIterator[Trader]:
    """A trader at an exchange that accepts both versions."""
    async with a_client(ScriptedApi()) as http:
        trader = Trader(http, SIGNER, an_account(1, 2), lambda: NOW_S)
        trader.credentials = Credentials("key", "c2VjcmV0", "pass")
        trader.markets._terms_by_token["7"] = MarketTerms("0.01", is_neg_risk=False, fee_rate_bps=0)
        yield trader


@pytest.mark.parametrize("wanted", [None, 2])
@pytest.mark.parametrize("fields", ATTRIBUTED, ids=" and ".join)
async def test_an_order_with_a_builder_or_metadata_is_signed_with_them(
    trader: Trader, wanted: int | None, fields: dict[str, str]
) -> None:
    trader.struct_version = wanted
    order = (await trader.sign(a_draft(**fields))).body["order"]
    given = {"builder": ZERO_BYTES32, "metadata": ZERO_BYTES32, **fields}
    assert {name: order[name] for name in given} == given
    assert "nonce" not in order


@pytest.mark.parametrize("fields", ATTRIBUTED, ids=" and ".join)
async def test_an_order_with_a_builder_or_metadata_is_refused_where_version_1_would_sign_it(
    trader: Trader, fields: dict[str, str]
) -> None:
    trader.struct_version = 1
    with pytest.raises(
        BuilderNotSigned, match="signs builder and metadata, and struct_version is 1"
    ):
        await trader.sign(a_draft(**fields))
    trader.struct_version = None
    trader.account = an_account(1)
    with pytest.raises(
        BuilderNotSigned, match="signs builder and metadata, and it is not accepted here"
    ):
        await trader.sign(a_draft(**fields))


async def test_an_order_without_a_builder_is_signed_by_the_first_version_or_the_wanted_one(
    trader: Trader,
) -> None:
    assert "nonce" in (await trader.sign(a_draft())).body["order"]
    trader.struct_version = 2
    assert "timestamp" in (await trader.sign(a_draft())).body["order"]
    trader.account = an_account(1)
    with pytest.raises(StructNotAccepted, match="version 2 is not accepted here; accepted: 1"):
        await trader.sign(a_draft())


async def test_the_struct_version_of_the_blocking_client_is_that_which_signs(
    trader: Trader,
) -> None:
    loop = ClientLoop()
    try:
        blocking = BlockingTrader(trader, loop)
        blocking.struct_version = 2
        assert "timestamp" in blocking.sign(a_draft()).body["order"]
        blocking.struct_version = 1
        assert "nonce" in blocking.sign(a_draft()).body["order"]
        with pytest.raises(BuilderNotSigned):
            blocking.sign(a_draft(builder=WORD))
        with pytest.raises(AttributeError):
            blocking.struct_versions = 2  # type: ignore[attr-defined]
    finally:
        loop.close()
