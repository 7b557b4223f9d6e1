"""The parts of the web app's server."""

from collections.abc import Mapping
from dataclasses import dataclass

from foretell.web.build_files import BuildFile
from foretell.web.configuration import WebConfiguration
from foretell.web.operation import OperatorView
from foretell.web.sandbox_wallets import SandboxWallets


@dataclass(frozen=True, slots=True)
class WebContext:
    """Files, configuration and, in the sandbox only, wallets."""

    files: Mapping[str, BuildFile]
    configuration: WebConfiguration
    policy: str
    """The content security policy of the page."""
    wallets: SandboxWallets | None = None
    operation: OperatorView | None = None
    """The state of the installation, if there is a token to ask for it."""
