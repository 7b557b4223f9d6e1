"""The HTTP server of a process: every API under its path, on one port.

It answers from the start of the process on. An API that is not open yet refuses requests, so that clients
of a process that replays a long journal know that it is starting.
"""

import socket
from collections.abc import Collection, Mapping
from typing import NamedTuple

from foretell.app.clock_and_ids import monotonic_ms, numbered_ids
from foretell.app.gateway import Gateway, Server, build_server, connections_max, refuse_origin
from foretell.app.http.connection_places import PER_ADDRESS_MAX, ConnectionPlaces, PlaceLimits
from foretell.app.http.connection_refusals import ConnectionRefusals
from foretell.app.http.fast_routes import RequestLine, ServedFastRoute, served_under
from foretell.app.products import PRODUCT_BY_ROLE
from foretell.app.roles import Role
from foretell.domain.values.origins import ANY_ORIGIN, CrossOrigin
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.cross_origin import CrossOriginApp
from foretell.edge.fast_route import FastRoute, Route
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import NO_LIMITS, RateLimits
from foretell.edge.security_headers import SecureApplication
from foretell.edge.shared_limits import SharedLimits
from foretell.edge.telemetry import AsgiApp, Telemetry
from foretell.edge.throttled_application import ApiLimits, ThrottledApplication


class Access(NamedTuple):
    """Access to the APIs: pages in a browser, clients with their limits, and metrics."""

    origins: Collection[str] = (ANY_ORIGIN,)
    limits: RateLimits = NO_LIMITS
    connections_per_address_max: int = PER_ADDRESS_MAX
    has_metrics: bool = True
    """Whether the metrics of the process are at the same port."""


class ApiServer:
    """The APIs of a process, and the server that answers for them."""

    def __init__(
        self,
        prefix_by_role: Mapping[Role, str],
        base_url: str,
        host: str,
        port: int,
        access: Access | None = None,
    ) -> None:
        origins, limits, per_address_max, has_metrics = Access() if access is None else access
        self._prefix_by_role = prefix_by_role
        self._limits_by_role = {
            role: ApiLimits(RateLimiter(role, limits, monotonic_ms), PRODUCT_BY_ROLE[role].body)
            for role in prefix_by_role
        }
        self._app_by_prefix: dict[str, AsgiApp] = {
            prefix: PRODUCT_BY_ROLE[role].unavailable_app()
            for role, prefix in prefix_by_role.items()
        }
        self._fast_routes: dict[RequestLine, ServedFastRoute] = {}
        gateway = Gateway(self._app_by_prefix, base_url, has_metrics=has_metrics)
        cross_origin = CrossOrigin(frozenset(origins), prefix_by_role.get(Role.CREATION))
        app = SecureApplication(CrossOriginApp(gateway, cross_origin, refuse_origin))
        bodies = {prefix: PRODUCT_BY_ROLE[role].body for role, prefix in prefix_by_role.items()}
        refusals = ConnectionRefusals(numbered_ids(), bodies)
        place_limits = PlaceLimits.of(connections_max(), per_address_max)
        places = ConnectionPlaces(place_limits, self._addresses)
        self.server: Server = build_server(
            app, host, port, self._fast_routes, refusals=refusals, places=places
        )

    def _addresses(self) -> ClientAddresses:
        """Return what distinguishes clients from proxies; it is the same for every API."""
        limited = next(iter(self._limits_by_role.values()), None)
        return ClientAddresses() if limited is None else limited.addresses

    async def start(self, listener: socket.socket) -> None:
        """Answer at a socket, and return once that is so."""
        await self.server.start(listener, "server")

    def open(self, role: Role, app: AsgiApp, fast_routes: Mapping[Route, FastRoute]) -> None:
        """Let an API answer by its application, and by its fast routes past that."""
        prefix, limits = self._prefix_by_role[role], self._limits_by_role[role]
        throttled = ThrottledApplication(app, limits)
        telemetry = self._app_by_prefix[prefix] = Telemetry(throttled, role, numbered_ids())
        self._fast_routes |= served_under(prefix, fast_routes, telemetry, limits)

    def share_limits(self, shared: SharedLimits) -> None:
        """Share the rate limits with other processes; call it before an API is open."""
        for api in self._limits_by_role.values():
            api.limiter.shared = shared

    def change_limits(self, limits: RateLimits) -> None:
        """Apply other rate limits to the requests that come from now on."""
        for api in self._limits_by_role.values():
            api.change(limits)

    async def wait(self) -> None:
        """Return when the server has ended."""
        await self.server.wait()

    async def finish(self) -> None:
        """Stop accepting requests, and return when those that were accepted are answered.

        Those that wait for their turn are refused.
        """
        for api in self._limits_by_role.values():
            api.limiter.close()
        await self.server.finish()
