"""The installation and the accounts that the examples use: the running sandbox, or one of your own.

FORETELL_DATA names the sandbox's data folder; without it, the examples use `.foretell`. At another
installation, FORETELL_URL and FORETELL_RPC_URL are its address and its node's, FORETELL_KEY_FILE has
your key as 64 hex digits, and FORETELL_MARKET is the slug of a market.
"""

import json
import os
from pathlib import Path
from typing import Any

from foretell.sdk.client import KeySigner, Urls

FOLDER = Path(os.environ.get("FORETELL_DATA", ".foretell"))
URL = os.environ.get("FORETELL_URL")


def ready() -> dict[str, Any]:
    """Return what the sandbox says of itself."""
    return dict(json.loads((FOLDER / "ready.json").read_text()))


def urls() -> Urls:
    """Return the addresses of the installation."""
    if URL is not None:
        return Urls.at(URL, os.environ.get("FORETELL_RPC_URL", ""))
    return Urls.from_ready(FOLDER)


def signer(role: str, number: int = 1) -> KeySigner:
    """Return one of the sandbox's accounts, or at another installation the one of your key."""
    if URL is not None:
        return KeySigner.from_hex(Path(os.environ["FORETELL_KEY_FILE"]).read_text())
    accounts = [account for account in ready()["accounts"] if account["role"] == role]
    return KeySigner.from_hex(accounts[number - 1]["privateKey"])


def seeded_market() -> str:
    """Return the slug of a market to trade in: the one that the sandbox starts with, or yours."""
    return os.environ.get("FORETELL_MARKET") or str(ready()["market"]["slug"])
