"""The running sandbox, as the examples use it: its addresses and its public keys.

FORETELL_DATA names its data folder; without it, the examples use `.foretell`.
"""

import json
import os
from pathlib import Path

from foretell.sdk.client import KeySigner, Urls

FOLDER = Path(os.environ.get("FORETELL_DATA", ".foretell"))
READY = json.loads((FOLDER / "ready.json").read_text())


def urls() -> Urls:
    """Return the addresses of the sandbox; for another installation, `Urls.at(url, rpc)`."""
    return Urls.from_ready(FOLDER)


def signer(role: str, number: int = 1) -> KeySigner:
    """Return one of the sandbox's accounts; elsewhere, use your own key, keystore or remote signer."""
    accounts = [account for account in READY["accounts"] if account["role"] == role]
    return KeySigner.from_hex(accounts[number - 1]["privateKey"])


def seeded_market() -> str:
    """Return the slug of the market that the sandbox starts with."""
    return str(READY["market"]["slug"])
