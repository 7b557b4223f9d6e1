"""Standing of an order that arrives: whether its id, maker, wallet and market still admit it."""

from foretell.domain.errors.exchange import (
    MarketHalted,
    OrderCanceledOnChain,
    OrderPlacedBefore,
    WalletBarred,
)
from foretell.domain.errors.order import InvalidOrderNonce, OrderStopped, OwnerSigningOff
from foretell.domain.exchange.arrivals.chain_cancels import was_canceled
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import SignedOrder
from foretell.domain.exchange.signing.stops import StopKind, is_stopped, standing_of
from foretell.domain.exchange.state import Market, State
from foretell.domain.values.hexadecimal import Address


def check_standing(state: State, market: Market, command: PlaceOrder) -> None:
    """Refuse an order that was placed long ago or canceled, of a barred wallet or a halted market."""
    if market.was_placed(command.order_id):
        raise OrderPlacedBefore(command.order_id)
    exchange, signed = market.opened.exchange, command.order
    if was_canceled(state, exchange, command.order_id):
        raise OrderCanceledOnChain(command.order_id)
    nonce = state.maker_nonces.get((exchange, signed.maker), 0)
    if signed.v2 is None and signed.nonce < nonce:
        raise InvalidOrderNonce(signed.nonce, nonce)
    if state.maker_stops:
        _check_stops(state, exchange, signed)
    cause = state.barred_wallets.get(signed.maker)
    if cause is not None:
        raise WalletBarred(signed.maker, cause)
    if command.condition_id in state.halted_markets:
        raise MarketHalted(command.condition_id)


def _check_stops(state: State, exchange: Address, signed: SignedOrder) -> None:
    """Refuse an order that its maker ended at the exchange by a stop."""
    maker, standing = signed.maker, standing_of(signed)
    for kind in StopKind:
        value = state.maker_stops.get((exchange, maker, kind), 0)
        if not is_stopped(standing, kind, value, signer=signed.signer, maker=maker):
            continue
        if kind is StopKind.OWNER_SIGNING:
            raise OwnerSigningOff(maker)
        assert signed.v2 is not None, "a timestamp ends orders of version 2"
        raise OrderStopped(signed.v2.timestamp_ms, value)
