"""What a wallet has, asked of the engines that know it."""

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address
from foretell.engine.protocol.requests import AccountRequest
from foretell.trading.accounts.accounts import BalanceRecord, balance_record
from foretell.trading.books.books import TokenRef
from foretell.trading.context import TradingContext


async def balance(
    context: TradingContext, wallet: Address, place: TokenRef | None
) -> BalanceRecord:
    """Return what a wallet has of a token, or of collateral when none is named."""
    asset = COLLATERAL if place is None else place.market.token(is_yes=place.is_yes)
    wanted = AccountRequest(wallet, asset, context.exchanges)
    condition_id = None if place is None else place.market.condition_id
    view = await context.shards.account(wanted, condition_id)
    exchange = context.deployment.exchange if place is None else place.market.opened.exchange
    return balance_record(wallet, view, context.exchanges, exchange)
