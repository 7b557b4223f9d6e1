from dataclasses import replace

import pytest
from tests.creation.rig import Studio

from foretell.creation.context import CreationOptions
from foretell.domain.errors.chain import SandboxOnly

pytestmark = pytest.mark.anyio


async def test_local_storage_is_the_sandbox_s_alone_unless_the_operator_says_so(
    studio: Studio,
) -> None:
    elsewhere = replace(studio.sandbox.deployment, chain_id=137, is_sandbox=False)

    with pytest.raises(SandboxOnly, match="metadata that is stored on this machine alone"):
        replace(studio.services, deployment=elsewhere)

    allowed = replace(
        studio.services, deployment=elsewhere, options=CreationOptions(may_store_locally=True)
    )
    assert allowed.rules.default_chain_id == 137
