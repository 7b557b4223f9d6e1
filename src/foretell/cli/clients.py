"""`foretell clients`: the lines with which clients of the ecosystem use a running sandbox."""

from foretell.domain.contracts.deployment import parse_deployment
from foretell.sandbox.known_clients import KNOWN_CLIENTS, client_setup
from foretell.sandbox.ready import FILE, read_ready
from foretell.settings import Settings


def client_lines(settings: Settings) -> str:
    """Return the lines of every known client for the sandbox of the data folder."""
    ready = read_ready(settings.data)
    deployment = parse_deployment(settings.deployment_file.read_bytes())
    setup = client_setup(ready, str((settings.data / FILE).resolve()), deployment)
    return "\n\n".join(
        f"# {client.package} {client.version}, trading for {client.wallet}\n"
        f"# pip install {client.package}=={client.version}, in an environment of its own\n"
        f"{client.lines(setup)}"
        for client in KNOWN_CLIENTS
        if setup.deposit_wallets or "deposit" not in client.wallet
    )
