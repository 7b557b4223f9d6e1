"""Refusals of the web app's server; their place in the tree of refusals: see `families`."""

from foretell.domain.errors.families import InvalidInput, NotFound, Unauthenticated, Unavailable


class ForeignHost(InvalidInput):
    """A request to the sandbox's wallets that is not from the sandbox's own page."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"the sandbox's wallets sign for its own page only, not for {host[:100]!r}; open the link"
            " that foretell up printed"
        )


class WrongSandboxToken(Unauthenticated):
    """The token is not the one of this sandbox."""

    def __init__(self) -> None:
        super().__init__(
            "the token is not the one of this sandbox; open the link that foretell up printed"
        )


class WrongOperatorToken(Unauthenticated):
    """The token is not the operator's."""

    def __init__(self) -> None:
        super().__init__("the token is not the operator's: it is the setting operator_token")


class UnknownWallet(NotFound):
    """The address is none of the sandbox's wallets."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address[:66]} is none of the sandbox's wallets; /sandbox/accounts lists them"
        )


class WalletBusy(Unavailable):
    """Too many transactions of this wallet wait to be sent; nothing was sent."""

    def __init__(self, waiting_max: int) -> None:
        super().__init__(
            f"{waiting_max} transactions of this wallet wait already, or the chain does not answer; try"
            " again later",
            retry_after_s=1,
        )
