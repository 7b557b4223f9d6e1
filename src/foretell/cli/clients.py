"""`foretell clients`: the lines with which clients of the ecosystem use a running sandbox."""

from foretell.domain.contracts.deployment import parse_deployment
from foretell.sandbox.known_clients import KNOWN_CLIENTS, client_setup
from foretell.sandbox.ready import FILE, read_ready
from foretell.settings import Settings


def client_lines(settings: Settings) -> str:
    """Return the lines of every known client for the sandbox of the data folder."""
    return "\n\n".join(client_parts(settings))


def client_parts(settings: Settings) -> list[str]:
    """Return the lines of each known client, those in Python first."""
    ready = read_ready(settings.data)
    deployment = parse_deployment(settings.deployment_file.read_bytes())
    setup = client_setup(ready, str((settings.data / FILE).resolve()), deployment)
    return [
        client.described(setup)
        for client in KNOWN_CLIENTS
        if (setup.deposit_wallets or "deposit" not in client.wallet)
        and (setup.proxy_wallet or "proxy" not in client.wallet)
    ]
