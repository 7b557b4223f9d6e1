"""The trading API as it is served: its busiest routes taken out of the framework."""

from foretell.edge.telemetry import AsgiApp
from foretell.trading.lane import FastLane
from foretell.trading.routes import build_app
from foretell.trading.services import TradingServices


def trading_app(services: TradingServices) -> AsgiApp:
    """Return the application that answers trading clients."""
    return FastLane(build_app(services), services)
