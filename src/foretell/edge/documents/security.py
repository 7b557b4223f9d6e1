"""The headers that authenticate a request, as security schemes: L1, L2, builder, and tokens of bearers."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

PREFIX: Final = "SERVICE_"


class Security(NamedTuple):
    """The levels of which one must sign a request; without `is_required` it may also be unsigned."""

    levels: tuple[str, ...]
    is_required: bool = True

    def requirements(self) -> list[dict[str, list[str]]]:
        """Return the alternatives of an operation's document."""
        signed: list[dict[str, list[str]]] = [
            {name: [] for name in _scheme_names(level)} for level in self.levels
        ]
        return signed if self.is_required else [{}, *signed]


HEADERS: Final[Mapping[str, Mapping[str, str]]] = {
    "L1": {
        "ADDRESS": "The wallet that signs.",
        "SIGNATURE": (
            "EIP-712 signature of `ClobAuth(address address,string timestamp,uint256 nonce,string"
            " message)` in the domain `ClobAuthDomain` (by default), version `1`, with the chain id. The"
            " message is `This message attests that I control the given wallet`."
        ),
        "TIMESTAMP": "Seconds since 1970 when it was signed.",
        "NONCE": "Number of the credential set, 0 or more.",
    },
    "L2": {
        "ADDRESS": "The wallet that created the key.",
        "SIGNATURE": (
            "HMAC-SHA256 of timestamp + method + path + body, with the decoded secret as its key, in"
            " base64url. The path has no prefix of the API and no query."
        ),
        "TIMESTAMP": "Seconds since 1970 when it was signed.",
        "API_KEY": "The key, a UUID.",
        "PASSPHRASE": "The passphrase, 64 hex digits.",
    },
    "Readonly": {
        "ADDRESS": "The address that the key belongs to.",
        "READONLY_API_KEY": "A read-only key, which needs no signature.",
    },
    "Builder": {
        "BUILDER_API_KEY": "The builder's key, a UUID.",
        "BUILDER_SIGNATURE": "HMAC-SHA256 as in L2, with the builder's secret.",
        "BUILDER_TIMESTAMP": "Seconds since 1970 when it was signed.",
        "BUILDER_PASSPHRASE": "The builder's passphrase, 64 hex digits.",
    },
}
"""The headers of each level, without their prefix, and what they hold."""

BEARERS: Final[Mapping[str, str]] = {
    "Sandbox": (
        "The token of the sandbox, 64 hex digits: it ends the link that `foretell up` prints. The request is refused"
        " unless its `Host` is this machine and its `Origin`, if there is one, the page's own."
    ),
    "Operator": (
        "The setting `operator_token`; in a sandbox without the setting, the token of the sandbox."
    ),
}
"""The levels that a token in the header `Authorization: Bearer` stands for, and which token it is."""

L1: Final = Security(("L1",))
L2: Final = Security(("L2",))
L2_OR_READONLY: Final = Security(("L2", "Readonly"))
L2_OR_BUILDER: Final = Security(("L2", "Builder"))
L2_OR_BUILDER_IF_SIGNED: Final = Security(("L2", "Builder"), is_required=False)
BUILDER_IF_SIGNED: Final = Security(("Builder",), is_required=False)
L2_IF_SIGNED: Final = Security(("L2",), is_required=False)
SANDBOX: Final = Security(("Sandbox",))
OPERATOR: Final = Security(("Operator",))


def scheme_name(level: str, header: str) -> str:
    """Return the name of the security scheme of a header."""
    return f"{level}_{header}"


def security_schemes(levels: frozenset[str]) -> dict[str, Any]:
    """Return the schemes of these levels."""
    tokens = {
        level: {"type": "http", "scheme": "bearer", "description": about}
        for level, about in BEARERS.items()
        if level in levels
    }
    return tokens | {
        scheme_name(level, header): {
            "type": "apiKey",
            "in": "header",
            "name": PREFIX + header,
            "description": about,
        }
        for level in HEADERS
        if level in levels
        for header, about in HEADERS[level].items()
    }


def _scheme_names(level: str) -> list[str]:
    """Return the names of the schemes that are needed together at a level."""
    if level in BEARERS:
        return [level]
    return [scheme_name(level, header) for header in HEADERS[level]]
