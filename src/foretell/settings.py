"""The settings of an installation, from the environment (FORETELL_…) or from foretell.toml.

Without any setting an installation is the sandbox: a chain, a database and every product, in one folder.
Values are read here once; everything else gets them as arguments.
"""

import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from typing_extensions import override

from foretell.client_settings import ClientSettings, separated
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.domain.creation.storages import Storage
from foretell.domain.exchange.tick_size import TICKS_PER_ONE
from foretell.domain.values.origins import ANY_ORIGIN, is_origin
from foretell.edge.header_rules import DEFAULT_RULES, OWN_PREFIX, HeaderRules

PREFIX: Final = "FORETELL_"
CHECKOUT: Final = Path(__file__).parents[2]
SQLITE: Final = "sqlite+aiosqlite://"
DATABASE_DRIVERS: Final = ("postgresql+asyncpg://", SQLITE)
SHARDS_MAX: Final = 1024
WEB_URL: Final = re.compile(r"(https?://[A-Za-z0-9.:\[\]-]+)?(/[A-Za-z0-9._~-]+)*/?")
HEADER_PREFIX: Final = re.compile(r"[A-Z][A-Z0-9]{0,30}_")

LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"], BeforeValidator(lambda text: str(text).lower())
]


class Settings(ClientSettings):
    """The installation's settings; every field is documented in docs/reference/settings.md."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, toml_file="foretell.toml", extra="forbid", frozen=True
    )

    data: Path = Field(default=Path(".foretell"), description="folder of everything that is stored")
    host: str = Field(default="127.0.0.1", description="address that the APIs listen on")
    port: int = Field(default=8000, ge=1, le=65535, description="port that the APIs listen on")
    public_url: str | None = Field(
        default=None,
        description="base URL of the APIs for clients; the address listened on if unset",
    )
    blobs_url: str | None = Field(
        default=None,
        description="base URL of images and metadata, when market creation runs in another process",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="SQLAlchemy URL of the database; a SQLite file in the data folder if unset",
    )
    rpc_url: SecretStr | None = Field(
        default=None, description="JSON-RPC URL of the node; a dev chain of its own if unset"
    )
    chain_id: int = Field(default=SANDBOX_CHAIN_ID, ge=1, description="id of the chain")
    chain_port: int = Field(default=8545, ge=1, le=65535, description="port of the dev chain")
    chain_block_s: float = Field(
        default=1.0,
        ge=0.05,
        le=60,
        description="seconds between blocks of the dev chain while transactions wait",
    )
    anvil: Path | None = Field(
        default=None, description="the anvil program; the one from npm if unset"
    )
    npm_folder: Path = Field(
        default=CHECKOUT / "contracts" / "node_modules",
        description="where npm installed Conditional Tokens, Safe, anvil and the script of /docs",
    )
    master_key: SecretStr | None = Field(
        default=None,
        description="64 hex digits that API credentials are derived from; in the sandbox made once and"
        " kept in the data folder",
    )
    operator_key: SecretStr | None = Field(
        default=None, description="private key of the account that settles trades"
    )
    operator_keys: SecretStr | None = Field(
        default=None,
        description="private keys of up to seven further accounts that settle trades, separated by commas; outside"
        " of the sandbox",
    )
    registrar_key: SecretStr | None = Field(
        default=None, description="private key of the account that opens tokens to trading"
    )
    relayer_key: SecretStr | None = Field(
        default=None, description="private key of the account that sends Safe transactions"
    )
    wallet_gas_per_day_max: int = Field(
        default=10_000_000,
        ge=0,
        description="most gas that failed settlements of one wallet may cost in a day of UTC before it is"
        " barred; 0 for any",
    )
    unsimulated_gas_per_day_max: int = Field(
        default=50_000_000,
        ge=0,
        description="gas of matches that failed in batches on a day of UTC from which on each batch is simulated"
        " before it is sent; 0 to simulate all",
    )
    unknown_txs_wait_s: int = Field(
        default=600,
        ge=0,
        description="seconds after which transactions of settlement's accounts that a node has and the database"
        " does not are replaced by empty ones; 0 for never",
    )
    storage_key: SecretStr | None = Field(
        default=None,
        description="private key that signs stored metadata; its account needs no funds",
    )
    admin_key: SecretStr | None = Field(
        default=None,
        description="private key that deploys the contracts and grants their roles; for deploy",
    )
    header_prefixes: str = Field(
        default=",".join(DEFAULT_RULES.prefixes[1:]),
        description="prefixes of the headers that sign a request, beside SERVICE_, separated by commas",
    )
    l1_domain: str = Field(
        default=DEFAULT_RULES.l1_domain,
        min_length=1,
        max_length=64,
        description="name of the typed-data domain in which wallets sign for an API key",
    )
    accepts_unbound_l1: bool | None = Field(
        default=None,
        description="accept a wallet's signature for an API key that names no installation; by default only in the sandbox",
    )
    accepts_uma_moov2: bool = Field(
        default=False, description="accept `uma_moov2` as another word for `alt_moov2` in payloads"
    )
    collateral: str | None = Field(
        default=None, description="address of the collateral token, on a chain that has one"
    )
    fee_receiver: str | None = Field(
        default=None, description="address that receives the operator's fees"
    )
    community_pool: str | None = Field(
        default=None, description="address that receives the community's part of creation fees"
    )
    deployment: Path | None = Field(
        default=None,
        description="deployment.json of the chain; the one in the data folder if unset",
    )
    trading_url: str = Field(
        default="/clob",
        description="base URL of the trading API for the web app; a path is on the page's own host",
    )
    create_market_url: str = Field(
        default="/create-market",
        validation_alias=AliasChoices(
            "create_market_url", f"{PREFIX}CREATE_MARKET_URL", "CREATE_MARKET_URL"
        ),
        description="base URL of market creation for the web app, also as `CREATE_MARKET_URL`",
    )
    relayer_url: str = Field(
        default="/relayer", description="base URL of the relayer for the web app"
    )
    data_url: str = Field(default="/data", description="base URL of the data API for the web app")
    discovery_url: str = Field(
        default="/discovery", description="base URL of the discovery API for the web app"
    )
    allowed_origins: str | None = Field(
        default=None,
        description="origins whose pages may use the APIs from a browser, separated by commas, or *",
    )
    storage_upload_url: str | None = Field(
        default=None,
        description="URL of the service that stores metadata and images permanently, of the kind storage_kind",
    )
    storage_kind: Literal["bundler", "ipfs"] = Field(
        default="bundler",
        description="`bundler`: storage_upload_url takes data items (ANS-104) by POST; `ipfs`: it is the"
        " address of an IPFS node's API",
    )
    operator_token: SecretStr | None = Field(
        default=None,
        min_length=32,
        description="token of the operator's page, 32 characters or more; without it there is no such"
        " page, except in the sandbox, whose wallets' token it is",
    )
    storage_token: SecretStr | None = Field(
        default=None, description="token that storage_upload_url wants, sent as a bearer token"
    )
    stores_locally: bool = Field(
        default=False,
        description="keep metadata on this machine alone on a chain other than the sandbox's",
    )
    confirmations: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="blocks on top of a transaction before it counts as final",
    )
    chain_lag_s_max: int = Field(
        default=120,
        ge=0,
        description="seconds that an engine may be behind the chain before it refuses new orders; 0 for any",
    )
    settlement_lag_s_max: int = Field(
        default=120,
        ge=0,
        description="seconds that the oldest trade of an exchange may wait for its block before orders that would"
        " match are refused; 0 for any",
    )
    chain_still_s_max: int = Field(
        default=0,
        ge=0,
        description="seconds without a new block before new orders are refused, for a chain that makes blocks regularly;"
        " 0 for any time, as for a chain that makes them on demand",
    )
    market_ticks_per_one: int = Field(
        default=100,
        description="ticks between 0 and 1 of a new market: 10, 100, 200, 400, 1000 or 10000",
    )
    market_size_units_min: int = Field(
        default=5_000_000,
        ge=1,
        description="smallest order of a new market, in base units of a token",
    )
    sports_delay_s: int = Field(
        default=0,
        ge=0,
        le=60,
        description="seconds for which an order that crosses the book of a sports market is held; 0: it matches at once",
    )
    snapshot_every: int = Field(
        default=250_000,
        ge=0,
        description="commands between two snapshots of the journal; 0: no snapshots, all commands are kept",
    )
    journal_keeps: Literal["recent", "all"] = Field(
        default="recent",
        description="`recent` removes commands that no start needs; with `all` every table can be rebuilt",
    )
    shards: int = Field(
        default=0,
        ge=0,
        le=SHARDS_MAX,
        description="matching engines in processes of their own; 0: one, in the process that serves"
        " trading",
    )
    journal: Literal["file", "postgres"] = Field(
        default="file",
        description="where engines in processes of their own keep their journals: `file`, in the data"
        " folder, or `postgres`, where another process can take over",
    )
    shard_map: Path | None = Field(
        default=None,
        description="file that names the database of each shard's journal; all are in `database_url`"
        " if unset",
    )
    engine_host: str | None = Field(
        default=None,
        description="address that engines listen on for processes of other machines; a Unix socket of"
        " this machine if unset",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="port of `/metrics` at 127.0.0.1; the port of the APIs if unset",
    )
    log_level: LogLevel = Field(default="warning", description="debug, info, warning or error")
    log_json: bool = Field(default=False, description="log JSON lines instead of text")

    @field_validator("database_url")
    @classmethod
    def _check_driver(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(DATABASE_DRIVERS):
            raise ValueError(f"must begin with {' or '.join(DATABASE_DRIVERS)}")
        return url

    @field_validator("header_prefixes")
    @classmethod
    def _check_prefixes(cls, prefixes: str) -> str:
        if not all(map(HEADER_PREFIX.fullmatch, separated(prefixes))):
            raise ValueError("must be prefixes such as EXAMPLE_, separated by commas")
        return prefixes

    @field_validator("allowed_origins")
    @classmethod
    def _check_origins(cls, origins: str | None) -> str | None:
        if not all(map(is_origin, separated(origins))):
            raise ValueError(
                "must be * or origins such as https://app.example, separated by commas"
            )
        return origins

    @field_validator("trading_url", "create_market_url", "relayer_url", "data_url", "discovery_url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if WEB_URL.fullmatch(url) is None:
            raise ValueError(
                "must be a path such as /clob or a URL such as https://api.example/clob"
            )
        return url.rstrip("/")

    @field_validator("market_ticks_per_one")
    @classmethod
    def _check_ticks(cls, ticks_per_one: int) -> int:
        if ticks_per_one not in TICKS_PER_ONE:
            raise ValueError(f"must be one of {', '.join(map(str, TICKS_PER_ONE))}")
        return ticks_per_one

    @classmethod
    @override
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read arguments first, then the environment, then the file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @property
    def header_rules(self) -> HeaderRules:
        """The headers that sign requests, and the domain of the signatures of wallets."""
        more = [prefix for prefix in separated(self.header_prefixes) if prefix != OWN_PREFIX]
        accepts_unbound = self.accepts_unbound_l1
        if accepts_unbound is None:
            accepts_unbound = self.is_sandbox
        prefixes = (OWN_PREFIX, *more)
        return HeaderRules(prefixes, self.l1_domain, accepts_unbound_l1=accepts_unbound)

    @property
    def is_sandbox(self) -> bool:
        """Whether the chain is the installation's own dev chain, with public keys."""
        return self.rpc_url is None

    @property
    def origins(self) -> frozenset[str]:
        """The origins that may use the APIs: every one in the sandbox, else none, unless they are named."""
        if self.allowed_origins is None:
            return frozenset({ANY_ORIGIN} if self.is_sandbox else ())
        return frozenset(separated(self.allowed_origins))

    @property
    def storage(self) -> Storage:
        """Where metadata and images are stored."""
        if self.storage_upload_url is None:
            return Storage.LOCAL
        return Storage.IPFS if self.storage_kind == "ipfs" else Storage.ARWEAVE

    @property
    def storage_bearer(self) -> str | None:
        """The token for the permanent storage."""
        return None if self.storage_token is None else self.storage_token.get_secret_value()

    @property
    def devchain_url(self) -> str:
        """The JSON-RPC URL of the sandbox's chain."""
        return f"http://127.0.0.1:{self.chain_port}"

    @property
    def deployment_file(self) -> Path:
        """The path of deployment.json."""
        return self.deployment or self.data / "deployment.json"

    @property
    def base_url(self) -> str:
        """The base URL of the APIs for clients."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (self.public_url or f"http://{host}:{self.port}").rstrip("/")

    @property
    def database(self) -> str:
        """The database's URL."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"{SQLITE}/{self.sqlite_file}"

    @property
    def sqlite_file(self) -> Path:
        """The file of the database, unless a URL names one."""
        return self.data.absolute() / "foretell.db"

    @property
    def is_embedded(self) -> bool:
        """Whether the database is a file, which several processes cannot share."""
        return self.database.startswith(SQLITE)

    @property
    def blob_base_url(self) -> str:
        """The base URL of images and metadata for clients."""
        return (self.blobs_url or f"{self.base_url}/create-market").rstrip("/")
