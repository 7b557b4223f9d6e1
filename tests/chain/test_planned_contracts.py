from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import NPM_FOLDER

from foretell.chain.deploy_plan import DeployPlan
from foretell.chain.planned_contracts import plan_contracts
from foretell.chain.sandbox.plan import (
    ECOSYSTEM_SAFE_FACTORY,
    ECOSYSTEM_SAFE_SINGLETON,
    sandbox_plan,
)
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.errors.chain import InvalidDeployment
from foretell.domain.errors.exchange import ForeignProfile
from foretell.domain.exchange.profiles import SANDBOX_PROFILES
from foretell.domain.values.hexadecimal import Address

DOLLAR = Address("0x" + "d0" * 20)


def a_production_plan() -> DeployPlan:
    return DeployPlan(
        chain_id=137,
        npm_folder=NPM_FOLDER,
        admin_key=bytes([9]) * 32,
        operators=(Address("0x" + "01" * 20),),
        registrars=(Address("0x" + "02" * 20),),
        fee_receiver=Address("0x" + "03" * 20),
        community_pool=Address("0x" + "04" * 20),
        existing={ContractName.COLLATERAL: DOLLAR},
    )


def test_contracts_of_published_code_have_their_published_addresses() -> None:
    # The addresses that Safe 1.3.0 publishes for hundreds of chains.
    contracts = plan_contracts(a_production_plan()).contracts
    assert contracts[ContractName.MULTI_SEND].address == (
        "0xa238cbeb142c10ef7ad8442c6d1f9e89e07e7761"
    )
    assert contracts[ContractName.SAFE_FALLBACK_HANDLER].address == (
        "0xf48f2b2d2a534e402487b3ee7c18c33aec0fe5e4"
    )
    assert contracts[ContractName.SAFE_SINGLETON].address == (
        "0xd9db270c1b5e3bd161e8c8503c55ceabee709552"
    )


def test_a_production_chain_has_its_collateral_and_gets_the_other_contracts() -> None:
    contracts = plan_contracts(a_production_plan()).contracts
    assert contracts[ContractName.COLLATERAL] == (DOLLAR, None, False)
    assert not any(contract.is_placed for contract in contracts.values())
    assert set(contracts) == set(ContractName)


def test_an_address_follows_from_the_constructor_arguments() -> None:
    plan = a_production_plan()
    other = replace(plan, fee_receiver=Address("0x" + "05" * 20))
    before, after = plan_contracts(plan).contracts, plan_contracts(other).contracts
    assert before[ContractName.EXCHANGE].address != after[ContractName.EXCHANGE].address
    assert before[ContractName.CONDITIONAL_TOKENS] == after[ContractName.CONDITIONAL_TOKENS]
    assert plan_contracts(plan) == plan_contracts(plan)


def test_a_production_chain_refuses_order_profiles_of_another_exchange() -> None:
    with pytest.raises(ForeignProfile, match="Polymarket"):
        plan_contracts(replace(a_production_plan(), profiles=SANDBOX_PROFILES))


@pytest.mark.parametrize(
    ("plan", "cause"),
    [
        (replace(a_production_plan(), existing={}), "collateral"),
        (
            replace(
                a_production_plan(), placed={ContractName.SAFE_FACTORY: ECOSYSTEM_SAFE_FACTORY}
            ),
            "chosen address",
        ),
    ],
)
def test_a_sandbox_plan_is_refused_on_a_production_chain(plan: DeployPlan, cause: str) -> None:
    with pytest.raises(InvalidDeployment, match=cause):
        plan_contracts(plan)


def test_the_sandboxs_safes_are_those_that_the_ecosystems_clients_derive() -> None:
    planned = plan_contracts(sandbox_plan(NPM_FOLDER))
    assert planned.safe_init_code_hash == (
        "0x2bce2127ff07fb632d16c8347c4ebf501f4841168bed00d9e6ef715ddb6fcecf"
    )
    contracts = planned.contracts
    assert contracts[ContractName.SAFE_FACTORY].address == ECOSYSTEM_SAFE_FACTORY
    assert contracts[ContractName.SAFE_SINGLETON].address == ECOSYSTEM_SAFE_SINGLETON


def test_a_plan_never_shows_its_keys(tmp_path: Path) -> None:
    shown = repr(sandbox_plan(tmp_path))
    assert "5de4111afa1a4b94" not in shown
    assert "_key" not in shown
