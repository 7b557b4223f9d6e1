"""The fields of the records of the data API, with their types."""

from tests.rigs.read_apis import fields

POSITION = fields(
    ("str", "proxyWallet asset conditionId title slug icon eventSlug eventId outcome"),
    ("str", "oppositeOutcome oppositeAsset endDate"),
    ("number", "size avgPrice initialValue currentValue cashPnl percentPnl totalBought"),
    ("number", "totalBoughtUsdc realizedPnl percentRealizedPnl curPrice"),
    ("bool", "redeemable mergeable negativeRisk"),
    ("int", "outcomeIndex timestamp"),
)
TRADE = fields(
    ("str", "proxyWallet side asset conditionId title slug icon eventSlug outcome name pseudonym"),
    ("str", "bio profileImage transactionHash"),
    ("str?", "profileImageOptimized"),
    ("number", "size price usdcSize"),
    ("int", "timestamp outcomeIndex"),
)
ACTIVITY = fields(
    ("str", "proxyWallet conditionId type transactionHash title slug icon eventSlug outcome"),
    ("str", "name pseudonym bio profileImage"),
    ("str?", "profileImageOptimized asset side"),
    ("number", "size usdcSize"),
    ("number?", "price"),
    ("int", "timestamp"),
    ("int?", "outcomeIndex"),
)
HOLDER = fields(
    ("str", "proxyWallet bio asset pseudonym name profileImage"),
    ("str?", "profileImageOptimized"),
    ("number", "amount"),
    ("int", "outcomeIndex"),
    ("bool", "displayUsernamePublic"),
)
TRADER = fields(
    ("str", "rank proxyWallet"),
    ("str?", "userName profileImage xUsername"),
    ("bool?", "verifiedBadge"),
    ("number", "vol pnl"),
)
WIN = fields(
    ("str", "winRank proxyWallet"),
    ("str?", "userName eventTitle slug icon eventSlug profileImage"),
    ("number", "initialValue finalValue pnl"),
)
VALUE = fields(("str", "user"), ("number", "value"))
TRADED = fields(("str", "user"), ("int", "traded"))
VOLUME = fields(("str", "user volume"))
MARKET_VALUE = fields(("str", "market"), ("number", "value"))
BUILDER = fields(
    ("str", "rank builder builderLogo"),
    ("number", "volume"),
    ("int", "activeUsers"),
    ("bool", "verified"),
)
BUILDER_DAY = {**BUILDER, **fields(("str", "dt"))}
