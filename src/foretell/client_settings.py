"""The settings that bound what clients may use: their rates, connections, reads and relayed transactions."""

import ipaddress
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, field_validator
from pydantic_settings import BaseSettings

from foretell.domain.values.hexadecimal import Address
from foretell.edge.rate_limits import WAIT_S_MAX, RateLimits, WaitingBounds, windows_with
from foretell.store.public_reads.places import PublicReadLimits

READS: Final = PublicReadLimits()
RELAY_GAS_MOST: Final = 10**15
RELAY_BUILDERS_MAX: Final = 100
Count = Annotated[int, Field(ge=1, le=100)]
Seconds = Annotated[float, Field(ge=0.1, le=300)]
RelayGas = Annotated[int, Field(ge=0, le=RELAY_GAS_MOST)]
Builder = Annotated[Address, StringConstraints(pattern=r"^0x[0-9a-fA-F]{40}$", to_lower=True)]


class ClientSettings(BaseSettings):
    """The part of `Settings` about clients."""

    rate_limits: dict[str, str] | Literal["off"] = Field(
        default_factory=dict,
        description="rate limits by the name of their row, such as `200/10s`; `off` switches off a row, or all",
    )
    rate_limit_wait_s: int = Field(
        default=WAIT_S_MAX,
        ge=10,
        le=60,
        description="longest wait of a request over a limit for its turn, in seconds",
    )
    rate_limit_waiting_max: int = Field(
        default=WaitingBounds().requests,
        ge=1,
        le=100_000,
        description="requests of one client that wait at once",
    )
    rate_limit_waiting_all_max: int = Field(
        default=WaitingBounds().all_requests,
        ge=1,
        le=100_000,
        description="requests of all clients of an API that wait at once",
    )
    trusted_proxies: str | None = Field(
        default=None,
        description="networks of the proxies whose `X-Forwarded-For` names the client, with commas",
    )
    public_reads_max: Count = Field(
        default=READS.places, description="reads of public routes of a process that run at once"
    )
    public_reads_per_client_max: Count = Field(
        default=READS.places_per_client, description="those of one client; others wait for 10 s"
    )
    public_read_s: Seconds = Field(
        default=READS.read_s, description="seconds after which such a read is stopped"
    )
    public_sums_max: Count = Field(
        default=READS.sums,
        description="shares of fees that a process adds up at once",
    )
    public_sum_s: Seconds = Field(
        default=READS.sum_s, description="seconds after which such a computation is stopped"
    )
    relays_per_owner_max: int = Field(
        default=1_000,
        ge=0,
        le=1_000_000,
        description="transactions of one owner that the relayer sends in 24 hours; 0: any number",
    )
    relay_gas_per_owner_max: RelayGas = Field(
        default=600_000_000,
        description="gas that transactions of one owner may use in 24 hours; 0: any amount",
    )
    relays_per_builder_max: int = Field(
        default=5_000,
        ge=0,
        le=1_000_000,
        description="transactions that one account submits for other owners in 24 hours; 0: any number",
    )
    relay_gas_per_builder_max: RelayGas = Field(
        default=3_000_000_000,
        description="gas that these may use in 24 hours; 0: any amount",
    )
    relay_gas_by_builder: dict[Builder, RelayGas] = Field(
        default_factory=dict,
        max_length=RELAY_BUILDERS_MAX,
        description="gas in 24 hours of builders that the operator admits, by address, instead of all other limits"
        " of builders and of all owners; 0: any amount",
    )
    relay_gas_per_day_max: RelayGas = Field(
        default=15_000_000_000,
        description="gas that transactions of all owners may use in 24 hours, without those of admitted builders;"
        " 0: any amount",
    )
    connections_per_address_max: int = Field(
        default=1_000,
        ge=1,
        le=1_000_000,
        description="connections of one address to a process; proxies that are trusted count in total",
    )

    @field_validator("rate_limits")
    @classmethod
    def _check_rate_limits(cls, limits: dict[str, str] | str) -> dict[str, str] | str:
        windows_with(limits)
        return limits

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, networks: str | None) -> str | None:
        for network in separated(networks):
            ipaddress.ip_network(network)
        return networks

    @property
    def limits(self) -> RateLimits:
        """The rate limits, the bounds of waiting, and the proxies that name clients."""
        bounds = WaitingBounds()._replace(
            wait_ms=self.rate_limit_wait_s * 1000,
            requests=self.rate_limit_waiting_max,
            all_requests=self.rate_limit_waiting_all_max,
        )
        return RateLimits(
            windows_with(self.rate_limits), bounds, tuple(separated(self.trusted_proxies))
        )

    @property
    def public_reads(self) -> PublicReadLimits:
        """The bounds of the reads of public routes."""
        return PublicReadLimits(
            self.public_reads_max,
            self.public_reads_per_client_max,
            self.public_read_s,
            self.public_sums_max,
            self.public_sum_s,
        )


def separated(texts: str | None) -> list[str]:
    """Return the parts of a list with commas, without blanks around them."""
    return [text.strip() for text in (texts or "").split(",") if text.strip()]
