import pytest
from tests.build import EXCHANGE
from tests.indexer.story import CONTRACTS, TOKENS_CONTRACT
from tests.sandbox import Sandbox

from foretell.indexer.contracts import IndexedContracts


def test_spenders_are_those_whose_spending_shows() -> None:
    assert CONTRACTS.spenders == {EXCHANGE, TOKENS_CONTRACT}


@pytest.mark.anyio
async def test_a_deployment_names_the_contracts(sandbox: Sandbox) -> None:
    deployment = sandbox.deployment
    assert IndexedContracts.of(deployment) == IndexedContracts(
        deployment.collateral,
        deployment.conditional_tokens,
        frozenset({deployment.exchange}),
        announces_spending=False,
    )
