"""Random wrong orders over all structs, types and profiles: none is accepted, and none fails the server."""

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.orders.version_2 import a_deposit_wallet, a_wallet_order, some_v2_fields
from tests.rigs.trading import Trader, TradingRig, order_json
from tests.rigs.values import a_buy, a_deployment, a_key, an_address

from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.eip712 import sign_digest

pytestmark = pytest.mark.anyio

ALICE: Final = an_address("alice")
WALLETS: Final = {
    SignatureType.EOA: (ALICE,),
    SignatureType.PROXY: (a_deployment().proxy_wallet_of(ALICE),),
    SignatureType.SAFE: (a_deployment().safe_of(ALICE),),
    SignatureType.CONTRACT: (a_deposit_wallet("alice"), a_deposit_wallet("alice", 1)),
}
KINDS: Final = st.sampled_from(
    [
        (kind, wallet, profile)
        for kind, wallets in WALLETS.items()
        for wallet in wallets
        for profile in range(6)
        if kind is not SignatureType.CONTRACT or profile > 2
    ]
)
ANY: Final = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**260)
    | st.text(max_size=90)
    | st.binary(max_size=400).map(lambda raw: "0x" + raw.hex())
    | st.lists(st.integers(), max_size=3)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
)
SIGNED: Final = (
    "salt",
    "maker",
    "signer",
    "tokenId",
    "makerAmount",
    "takerAmount",
    "side",
    "signatureType",
    "signature",
    "timestamp",
    "metadata",
    "builder",
    "taker",
    "nonce",
    "feeRateBps",
)


def a_valid_order(kind: SignatureType, wallet: str, profile: int) -> SignedOrder:
    if kind is SignatureType.CONTRACT:
        return a_wallet_order("alice", wallet, profile=profile)
    v2 = some_v2_fields() if profile > 2 else None
    return a_buy("alice", maker=wallet, signature_type=kind, profile=profile, v2=v2)


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values of a field mean the same number or the same bytes to the server."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    texts = [str(each).lower() for each in (one, other)]
    return texts[0] == texts[1] or (
        all(each.isascii() and each.isdigit() for each in texts)
        and (int(texts[0]) == int(texts[1]))
    )


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(valid=KINDS, name=st.sampled_from(SIGNED), value=ANY, is_missing=st.booleans())
async def test_an_order_with_another_value_in_a_signed_field_is_refused(
    rig: TradingRig,
    alice: Trader,
    valid: tuple[SignatureType, str, int],
    name: str,
    value: Any,
    is_missing: bool,  # noqa: FBT001 - drawn
) -> None:
    rig.chain.contracts.update(WALLETS[SignatureType.CONTRACT])
    sent = order_json(a_valid_order(*valid))
    if name not in sent or is_same(sent[name], value):
        return
    if is_missing:
        del sent[name]
    else:
        sent[name] = value
    await check_refused(rig, alice, sent)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    one=KINDS, other=KINDS, signer=st.sampled_from(["alice", "bob"]), raw=st.binary(max_size=330)
)
async def test_an_order_with_the_signature_of_another_is_refused(
    rig: TradingRig, alice: Trader, one: Any, other: Any, signer: str, raw: bytes
) -> None:
    rig.chain.contracts.update(WALLETS[SignatureType.CONTRACT])
    order = a_valid_order(*one)
    stolen = a_valid_order(*other)
    changed = msgspec.structs.replace(stolen, salt="7")
    signatures = (
        raw,
        sign_digest(bytes(32), a_key(signer)),
        sign_digest(bytes(32), a_key(signer)) + stolen.signature[65:],
        order.signature + raw[:1] + b"\0",
        a_valid_order(*other).signature if one != other and changed != order else raw,
    )
    for signature in signatures:
        if signature[:65] == order.signature[:65] and len(signature) == len(order.signature):
            continue
        if one[:2] == other[:2] and signature == stolen.signature:
            continue  # the same order, signed for another profile: valid
        sent = order_json(order) | {"signature": "0x" + signature.hex()}
        await check_refused(rig, alice, sent)


async def check_refused(rig: TradingRig, trader: Trader, sent: dict[str, Any]) -> None:
    """Assert that an order is refused alone and in a batch, and that the engine has none."""
    before = dict(rig.host.engine.state.live_orders)
    body = {"order": sent, "owner": trader.key_id, "orderType": "GTC"}
    response = await trader.send("POST", "/order", body)
    assert 400 <= response.status_code < 500, (response.text, json.dumps(sent))
    assert response.json()["code"], response.text
    (answer,) = (await trader.send("POST", "/orders", [body])).json()
    assert answer["success"] is False, json.dumps(sent)
    assert rig.host.engine.state.live_orders == before
