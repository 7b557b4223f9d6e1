"""The words of the headers that sign requests: their prefixes, their values, and the domains of L1 signatures."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from foretell.domain.errors.http import MissingHeader
from foretell.domain.values.credentials import L1_DOMAIN_NAME, l1_domain
from foretell.domain.values.eip712 import Eip712Domain
from foretell.domain.values.hexadecimal import Address

OWN_PREFIX: Final = "SERVICE_"
CLIENT_PREFIXES: Final = ("SERVICE_", "POLY_", "KUEST_")


class HeaderRules(NamedTuple):
    """The prefixes of header names, and the domains that L1 signatures may be made in.

    A domain with the installation's contract binds a signature to the installation. One without, as clients
    of other exchanges sign, does not, so it is accepted only if the operator wants that.
    """

    prefixes: tuple[str, ...] = CLIENT_PREFIXES
    l1_domain: str = L1_DOMAIN_NAME
    l1_contract: Address | None = None
    accepts_unbound_l1: bool = True

    def bound_domain(self, chain_id: int) -> Eip712Domain | None:
        """Return the domain of this installation, None where it has no contract."""
        if self.l1_contract is None:
            return None
        return l1_domain(chain_id, self.l1_domain, self.l1_contract)

    def unbound_domain(self, chain_id: int) -> Eip712Domain:
        """Return the domain that any installation may have."""
        return l1_domain(chain_id, self.l1_domain)


DEFAULT_RULES: Final = HeaderRules()


def header_value(headers: Mapping[str, str], dialect: str, name: str) -> str:
    """Return the value of a header that was sent once: of two values, each reader might take another."""
    value = headers.get(dialect + name)
    values = getattr(headers, "getall", None)  # a plain mapping has one value of each
    is_repeated = values is not None and len(values(dialect + name, ())) > 1
    if not value or is_repeated:
        raise malformed_header(dialect, name)
    return value


def malformed_header(dialect: str, name: str) -> MissingHeader:
    """Return the refusal of a header that is missing, malformed or repeated."""
    return MissingHeader((dialect + name).upper())
