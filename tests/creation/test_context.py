from dataclasses import replace

import pytest
from tests.creation.rig import CreationRig

from foretell.creation.context import CreationOptions
from foretell.domain.errors.chain import SandboxOnly
from foretell.media.bundler import Bundler

pytestmark = pytest.mark.anyio


@pytest.mark.deviation(8)
@pytest.mark.spec(71)
async def test_local_storage_is_for_the_sandbox_unless_the_operator_allows_it(
    rig: CreationRig,
) -> None:
    elsewhere = replace(rig.sandbox.deployment, chain_id=137, is_sandbox=False)

    with pytest.raises(
        SandboxOnly, match=r"on this machine only .*; set FORETELL_STORAGE_UPLOAD_URL"
    ):
        replace(rig.context, deployment=elsewhere)

    allowed = replace(
        rig.context, deployment=elsewhere, options=CreationOptions(may_store_locally=True)
    )
    assert allowed.rules.default_chain_id == 137
    async with Bundler("http://127.0.0.1:1/tx") as bundler:
        permanent = replace(rig.context, deployment=elsewhere, permanent_storage=bundler)
    assert permanent.rules.default_chain_id == 137
