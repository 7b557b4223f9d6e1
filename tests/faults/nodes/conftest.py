"""A node of another chain, for all tests here."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from tests.chain.chains import started
from tests.rigs.ports import free_port

from foretell.chain.devchain import DevChainOptions

OTHER_CHAIN_ID: Final = 137


@pytest.fixture(scope="session")
async def other_chain(
    devchain_options: DevChainOptions, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    """The URL of a node of another chain, without contracts."""
    folder: Path = tmp_path_factory.mktemp("other-chain")
    options = replace(devchain_options, folder=folder, port=free_port(), chain_id=OTHER_CHAIN_ID)
    async with started(options) as rpc:
        yield rpc.url
