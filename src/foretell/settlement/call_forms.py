"""The forms of match calls that the exchanges take: an exchange of an earlier deployment is not packed."""

from foretell.chain.sender import Sender
from foretell.chain.views import ViewCall
from foretell.domain.contracts.packed_match import MATCH_PACKED, SUPPORTS_INTERFACE
from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.values.hexadecimal import Address


class CallForms:
    """Answers of the exchanges, each asked once; there are two."""

    def __init__(self) -> None:
        self._is_packed_by_exchange: dict[Address, bool] = {}

    async def is_packed(self, operator: Sender, exchange: Address) -> bool:
        """Return whether the exchange takes packed matches.

        A node that refuses the question is asked again; every exchange takes `matchOrders`.
        """
        if (known := self._is_packed_by_exchange.get(exchange)) is not None:
            return known
        view = ViewCall(exchange, SUPPORTS_INTERFACE, (MATCH_PACKED.selector,))
        try:
            (answer,) = await operator.call_views([view])
        except ExecutionReverted:
            answer = False
        except RpcRefused:
            return False
        self._is_packed_by_exchange[exchange] = bool(answer)
        return bool(answer)
