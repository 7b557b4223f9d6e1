"""The context of the trading API's handlers, built once by the composition root."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from foretell.domain.contracts.deployment import Deployment
from foretell.domain.contracts.wallets import Wallets
from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.auth import KeyRing
from foretell.edge.signed_requests import SignedRequests
from foretell.engine.protocol.requests import AccountReply, AccountRequest, CommittedCommand
from foretell.engine.protocol.router import Shards
from foretell.runtime.loop_share import LoopShare
from foretell.runtime.loops import Loop
from foretell.store.database import Database
from foretell.trading.accounts.accounts import AccountChain, ChainView, OrderNonces
from foretell.trading.accounts.new_keys import NewKeyBudget
from foretell.trading.accounts.revocations import Revocations
from foretell.trading.accounts.signers import Recover, Signers
from foretell.trading.accounts.wallet_checks import WalletChecks
from foretell.trading.accounts.wallet_readings import WalletReadings
from foretell.trading.books.books import PriceSide, PublicBooks
from foretell.trading.books.market_names import MarketNames
from foretell.trading.books.market_pages import MarketPages
from foretell.trading.refusals import trading_body
from foretell.trading.streams.hub import Streams


@dataclass(frozen=True, slots=True)
class TradingContext:
    """The durable state of the markets, the callers' keys, and the connections to the engines."""

    deployment: Deployment
    database: Database
    shards: Shards
    key_ring: KeyRing
    books: PublicBooks
    market_names: MarketNames
    streams: Streams
    signers: Signers
    wallets: Wallets
    nonces: OrderNonces
    wallet_checks: WalletChecks
    account_chain: AccountChain
    signed_requests: SignedRequests
    price_side: PriceSide
    blob_base_url: str
    now_ms: Callable[[], int]
    new_uuid: Callable[[], str]
    revocations: Revocations | None = None
    """The log of revoked keys beside the database; a rig may have none."""
    sports_delay_s: int = 0
    """For how long orders that cross the book of a sports market are held."""
    wallet_readings: WalletReadings | None = None
    """None where no wallet held collateral before the first block."""
    new_keys: NewKeyBudget = field(default_factory=NewKeyBudget)
    loop_share: LoopShare = field(default_factory=LoopShare)
    """For answers to strangers that take long to compute."""
    market_pages: MarketPages = field(default_factory=MarketPages)

    def begin(self, is_theirs: Callable[[Bytes32], bool]) -> None:
        """Drop the state of some markets: their engine publishes the whole of it next."""
        self.streams.begin(is_theirs)

    def on_committed(self, committed: CommittedCommand) -> None:
        """Apply a command."""
        self.books.on_committed(committed)
        self.streams.on_committed(committed)

    def loops(self) -> dict[str, Loop]:
        """Return the loops that run while clients are served, by name."""
        follow = partial(self.streams.follow_revocations, self.database)
        return {
            "announcements": self.streams.announce,
            "live data": self.streams.publish_live,
            "sports": partial(self.streams.publish_sports, self.database),
            "pings of sports": self.streams.ping_sports,
            "heartbeats of streams": self.streams.beat,
            "revocations": follow,
            "wallets": partial(self.wallet_checks.follow, self.database),
        }

    @property
    def struct_version(self) -> int:
        """The newest version of the order struct that the exchange accepts."""
        return max(profile.struct_version for profile in self.deployment.profiles)

    @property
    def exchanges(self) -> tuple[Address, ...]:
        """The exchanges that settle trades of this installation."""
        return self.deployment.exchanges


def build_context(  # noqa: PLR0913 - the composition root calls it, once, by keywords
    *,
    deployment: Deployment,
    database: Database,
    shards: Shards,
    key_ring: KeyRing,
    chain: ChainView,
    recover: Recover,
    blob_base_url: str,
    now_ms: Callable[[], int],
    new_uuid: Callable[[], str],
    price_side: PriceSide = "taker",
    revocations: Revocations | None = None,
    sports_delay_s: int = 0,
) -> TradingContext:
    """Return the context; `on_committed` must be called with every command of the engines."""

    async def fetch_collateral(wallet: Address) -> AccountReply:
        return await shards.account(AccountRequest(wallet, COLLATERAL, deployment.exchanges), None)

    books = PublicBooks(deployment.exchange)
    market_names = MarketNames(database)
    wallets = Wallets(deployment)
    streams = Streams(
        books=books,
        market_names=market_names,
        wallets=wallets,
        key_ring=key_ring,
        now_ms=now_ms,
        new_uuid=new_uuid,
    )
    return TradingContext(
        deployment=deployment,
        database=database,
        shards=shards,
        key_ring=key_ring,
        books=books,
        market_names=market_names,
        streams=streams,
        signers=Signers(
            deployment.profiles_of,
            deployment.chain_id,
            recover,
            exchanges=deployment.exchanges,
        ),
        wallets=wallets,
        nonces=OrderNonces(chain.fetch_nonce, now_ms),
        wallet_checks=WalletChecks(chain.wallets, now_ms),
        account_chain=AccountChain.of(chain, now_ms),
        signed_requests=SignedRequests(database, now_ms, trading_body),
        price_side=price_side,
        blob_base_url=blob_base_url,
        now_ms=now_ms,
        new_uuid=new_uuid,
        revocations=revocations,
        sports_delay_s=sports_delay_s,
        wallet_readings=WalletReadings(database, deployment.exchanges, fetch_collateral, now_ms)
        if deployment.has_collateral_history
        else None,
    )
