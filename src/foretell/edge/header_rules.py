"""The words of the headers that sign requests: their prefixes, and the domain of L1 signatures."""

from typing import Final, NamedTuple

from foretell.domain.values.credentials import L1_DOMAIN_NAME

OWN_PREFIX: Final = "SERVICE_"
CLIENT_PREFIXES: Final = ("SERVICE_", "POLY_", "KUEST_")


class HeaderRules(NamedTuple):
    """The prefixes of header names, and the name of the domain that L1 signatures are made in."""

    prefixes: tuple[str, ...] = CLIENT_PREFIXES
    l1_domain: str = L1_DOMAIN_NAME


DEFAULT_RULES: Final = HeaderRules()
