from pathlib import Path

from tests.conftest import NPM_FOLDER

from foretell.chain.planned_contracts import plan_contracts
from foretell.chain.sandbox_plan import (
    ECOSYSTEM_SAFE_FACTORY,
    ECOSYSTEM_SAFE_SINGLETON,
    sandbox_plan,
)
from foretell.domain.contracts.deployment import ContractName


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
