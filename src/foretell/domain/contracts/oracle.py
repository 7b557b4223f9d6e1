"""Calls of the optimistic oracle: propose, dispute and settle answers.

A request is identified by its requester (the resolution adapter), the time of the question and its
text.
"""

from dataclasses import dataclass
from typing import Final

from foretell.domain.contracts.calldata import YES_OR_NO_QUERY
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address

PROPOSE_PRICE: Final = contract_function(
    "proposePrice(address,bytes32,uint256,bytes,int256)", "(uint256)"
)
DISPUTE_PRICE: Final = contract_function("disputePrice(address,bytes32,uint256,bytes)", "(uint256)")
ARBITRATE: Final = contract_function("arbitrate(address,bytes32,uint256,bytes,int256)")
SETTLE: Final = contract_function("settle(address,bytes32,uint256,bytes)", "(uint256)")
WITHDRAW: Final = contract_function("withdraw()", "(uint256)")
RESOLVE: Final = contract_function("resolve(bytes32)")
OWED: Final = contract_function("owed(address)", "(uint256)")
ARBITER: Final = contract_function("arbiter()", "(address)")
TOO_EARLY: Final = -(2**255)
"""The arbiter's answer that nobody can know yet: the question is asked again."""


@dataclass(frozen=True, slots=True)
class PriceRequest:
    """A question as the oracle identifies it; asked again, it has another time."""

    requester: Address
    asked_at_s: int
    ancillary_data: bytes

    def propose(self, price: int) -> bytes:
        """Return the calldata that proposes an answer, with the bond."""
        return PROPOSE_PRICE.encode(*self._key, price)

    def dispute(self) -> bytes:
        """Return the calldata that disputes the answer, with the same bond."""
        return DISPUTE_PRICE.encode(*self._key)

    def arbitrate(self, price: int) -> bytes:
        """Return the calldata by which the arbiter decides."""
        return ARBITRATE.encode(*self._key, price)

    def settle(self) -> bytes:
        """Return the calldata that pays out the bonds and the reward."""
        return SETTLE.encode(*self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.requester, YES_OR_NO_QUERY, self.asked_at_s, self.ancillary_data
