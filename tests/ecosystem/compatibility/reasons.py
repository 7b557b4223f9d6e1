"""Reasons why a method does not work here: `make compatibility` copies them into the page.

A method that works needs no line here, and a line that no client needs fails a test.
"""

import re
from typing import Final

QUOTES: Final = "there is no market for quotes"
SWITCHED_OFF: Final = "this release of the client switches builders off"

REASONS: Final = {
    "accept_rfq_quote": QUOTES,
    "approve_rfq_order": QUOTES,
    "cancel_rfq_quote": QUOTES,
    "cancel_rfq_request": QUOTES,
    "create_rfq_quote": QUOTES,
    "create_rfq_request": QUOTES,
    "get_rfq_best_quote": QUOTES,
    "assert_builder_auth": SWITCHED_OFF,
    "get_builder_trades": SWITCHED_OFF,
    "get_expected_proxy_wallet": "made for chain 80002, the client knows no proxy wallets; made for chain 137 it does, see the section on them",
    "get_transactions": "this client does not sign the request, so the server does not know whose they are",
}


def reason_of(method: str) -> str:
    """Return why a method does not work, whatever the style of its name; empty if that is not known."""
    return REASONS.get(re.sub(r"([A-Z])", r"_\1", method.rpartition(".")[2]).lower(), "")
