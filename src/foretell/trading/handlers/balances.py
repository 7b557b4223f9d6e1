"""What a wallet has, asked of the engines that know it."""

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address
from foretell.engine.protocol.requests import LookUpAccount
from foretell.trading.accounts.accounts import BalanceRecord, balance_record
from foretell.trading.books.books import TokenPlace
from foretell.trading.context import TradingServices


async def balance(
    services: TradingServices, wallet: Address, place: TokenPlace | None
) -> BalanceRecord:
    """Return what a wallet has of a token, or of collateral when none is named."""
    asset = COLLATERAL if place is None else place.market.token(is_yes=place.is_yes)
    wanted = LookUpAccount(wallet, asset, services.exchanges)
    condition_id = None if place is None else place.market.condition_id
    view = await services.shards.account(wanted, condition_id)
    exchange = services.deployment.exchange if place is None else place.market.opened.exchange
    return balance_record(wallet, view, services.exchanges, exchange)
