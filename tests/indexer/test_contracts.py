from dataclasses import replace

import pytest
from tests.indexer.chain_script import CONTRACTS, TOKENS_CONTRACT
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import EXCHANGE

from foretell.domain.contracts.deployment import ContractName
from foretell.domain.values.hexadecimal import ZERO_ADDRESS
from foretell.indexer.contracts import IndexedContracts


def test_spenders_are_the_contracts_whose_spending_is_logged() -> None:
    assert CONTRACTS.spenders == {EXCHANGE, TOKENS_CONTRACT}


@pytest.mark.anyio
async def test_a_deployment_names_the_contracts(sandbox: Sandbox) -> None:
    deployment = sandbox.deployment
    assert IndexedContracts.of(deployment) == IndexedContracts(
        deployment.collateral,
        deployment.conditional_tokens,
        frozenset({deployment.exchange, deployment.neg_risk_exchange}),
        announces_spending=False,
        neg_risk_adapter=deployment.address(ContractName.NEG_RISK_ADAPTER),
        wrapped_collateral=deployment.address(ContractName.WRAPPED_COLLATERAL),
    )


@pytest.mark.anyio
async def test_a_deployment_without_the_neg_risk_contracts_has_none(sandbox: Sandbox) -> None:
    names = (ContractName.EXCHANGE, ContractName.COLLATERAL, ContractName.CONDITIONAL_TOKENS)
    kept = {name: sandbox.deployment.contracts[name] for name in names}
    earlier = replace(sandbox.deployment, contracts=kept)

    contracts = IndexedContracts.of(earlier)

    assert contracts.exchanges == {earlier.exchange}
    assert contracts.untracked_wallets == {ZERO_ADDRESS, earlier.exchange}
    assert contracts.collateral_of(earlier.exchange) == earlier.collateral
