"""Application of a wallet's bar: its orders leave the books, and no new one is taken until it ends."""

from foretell.domain.exchange.commands import BarWallet
from foretell.domain.exchange.delays.delayed_orders import close_delayed, delayed_of
from foretell.domain.exchange.effects import CloseReason, Effect
from foretell.domain.exchange.state import State


def bar_wallet(state: State, command: BarWallet) -> list[Effect] | None:
    """Return the orders that left the books, or None if the wallet's bar is as wanted already.

    The orders close from the newest to the oldest, asset by asset.
    """
    wallet = command.wallet
    if not command.is_barred:
        return None if state.barred_wallets.pop(wallet, None) is None else []
    if state.barred_wallets.get(wallet) == command.cause:
        return None
    state.barred_wallets[wallet] = command.cause
    effects: list[Effect] = [
        close_delayed(state, delayed, CloseReason.WALLET_BARRED, command.at_ms)
        for delayed in delayed_of(state, wallet)
    ]
    effects += [
        state.close(order, CloseReason.WALLET_BARRED, command.at_ms)
        for asset in state.ledger.assets(wallet)
        for order in state.ledger.look_up(wallet, asset).orders()
    ]
    return [*effects, *state.book_changes(command.at_ms)]
