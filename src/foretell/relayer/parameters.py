"""Query parameters of the relayer, each declared once."""

from dataclasses import replace
from typing import Final

from foretell.domain.relay.request import RelayKind
from foretell.edge.parameters import optional_wallet, required_choice, required_text, wallet

ADDRESS: Final = wallet("address", "an owner, or its wallet")
WALLET: Final = wallet("address", "a wallet")
OWNER: Final = optional_wallet("address", "an owner, where the request is not signed")
KIND: Final = required_choice("type", "the kind of wallet", list(RelayKind))
ANY_KIND: Final = replace(KIND, parse=lambda _values: RelayKind.SAFE, is_required=False)
"""The kind of wallet where it changes nothing: any text is accepted."""
ID: Final = required_text("id", "a transactionID")
