"""The web app's server with a small build."""

from pathlib import Path

import pytest
from tests.rigs.sandbox import Sandbox
from tests.web.contexts import HOST, TOKEN, a_configuration

from foretell.web.build_files import read_build
from foretell.web.configuration import contracts_of, policy_of
from foretell.web.context import WebContext
from foretell.web.sandbox_wallets import SandboxWallets


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A folder with what a build has, and with a file of a type that is not served."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Foretell</title>")
    (tmp_path / "favicon.svg").write_text("<svg/>")
    (tmp_path / "assets" / "index-1.js").write_text("const text = 'much the same';\n" * 100)
    (tmp_path / "assets" / "index-1.js.map").write_text("{}")
    return tmp_path


@pytest.fixture
def wallets(sandbox: Sandbox) -> SandboxWallets:
    return SandboxWallets(sandbox.rpc, sandbox.deployment.chain_id, TOKEN, [HOST])


@pytest.fixture
def context(sandbox: Sandbox, build: Path, wallets: SandboxWallets) -> WebContext:
    configuration = a_configuration(
        sandbox.deployment.chain_id,
        contracts=contracts_of(sandbox.deployment),
        safe_factory_name=sandbox.deployment.safe_factory_name,
    )
    policy = policy_of(configuration.apis.all(), f"http://{HOST}")
    return WebContext(read_build(build), configuration, policy, wallets)
