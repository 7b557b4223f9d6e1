import pytest

from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.networks import NETWORKS, NetworkName


@pytest.mark.parametrize("name", list(NetworkName))
def test_a_known_network_brings_collateral_and_conditional_tokens(name: NetworkName) -> None:
    existing = NETWORKS[name].existing
    assert set(existing) == {ContractName.COLLATERAL, ContractName.CONDITIONAL_TOKENS}
