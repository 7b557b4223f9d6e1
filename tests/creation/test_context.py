from dataclasses import replace

import pytest
from tests.creation.rig import CreationRig

from foretell.creation.context import CreationOptions
from foretell.domain.errors.chain import SandboxOnly

pytestmark = pytest.mark.anyio


async def test_local_storage_is_for_the_sandbox_unless_the_operator_allows_it(
    rig: CreationRig,
) -> None:
    elsewhere = replace(rig.sandbox.deployment, chain_id=137, is_sandbox=False)

    with pytest.raises(SandboxOnly, match=r"on this machine only .*; set FORETELL_STORES_LOCALLY="):
        replace(rig.context, deployment=elsewhere)

    allowed = replace(
        rig.context, deployment=elsewhere, options=CreationOptions(may_store_locally=True)
    )
    assert allowed.rules.default_chain_id == 137
