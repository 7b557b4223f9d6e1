from dataclasses import replace
from pathlib import Path

import pytest

from foretell.chain.deploy import deploy
from foretell.chain.deploy_plan import DeployPlan
from foretell.chain.deployed_code import CodeMatch, compare_code
from foretell.chain.rpc import Rpc
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.errors.chain import WrongChain

pytestmark = pytest.mark.anyio


async def test_compare_code_reports_the_code_of_every_contract(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    assert set((await compare_code(bare_rpc, deployment)).values()) == {CodeMatch.SAME}
    await bare_rpc.send("anvil_setCode", deployment.exchange, "0x")
    await bare_rpc.send("anvil_setCode", deployment.neg_risk_exchange, "0x00")
    found = await compare_code(bare_rpc, deployment)
    assert found[ContractName.EXCHANGE] is CodeMatch.NOTHING
    assert found[ContractName.NEG_RISK_EXCHANGE] is CodeMatch.OTHER
    assert list(found.values()).count(CodeMatch.SAME) == len(ContractName) - 2


async def test_compare_code_refuses_another_chain(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    with pytest.raises(WrongChain):
        await compare_code(bare_rpc, replace(deployment, chain_id=137))
