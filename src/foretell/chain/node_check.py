"""The check of a node before anything is sent to it or any answer of it is used.

A node that is silent at the start is checked at its first answer. Until then requests to it fail as if it were silent.
"""

import asyncio

from foretell.chain.devchain import is_dev_chain
from foretell.chain.rpc import CHAIN_ID, Rpc
from foretell.domain.contracts.deployment import Deployment
from foretell.domain.errors.chain import ChainUnavailable, InvalidDeployment, WrongChain


class NodeCheck:
    """The state of the check of one node."""

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc
        """The node, for the questions of the check alone."""
        self.is_fit = False
        """Whether the node is of the chain of the settings, and may be used with the deployment."""
        self.passed = asyncio.Event()
        """Set once the chain has also been compared with that of the data folder and the database."""

    @property
    def checked_rpc(self) -> Rpc:
        """The node, for all other requests: none is sent before the check has passed."""
        return self.rpc.held_until(self.passed)

    async def check_fit(self, deployment: Deployment) -> None:
        """Refuse a node of another chain, and a sandbox's contracts elsewhere than on a dev chain.

        The keys of a sandbox are public, and its collateral is free. A node that does not answer is not fit yet.
        """
        try:
            await self.rpc.call(CHAIN_ID)
            may_be_used = not deployment.is_sandbox or await is_dev_chain(self.rpc)
        except WrongChain:
            raise
        except ChainUnavailable:
            return
        if not may_be_used:
            raise InvalidDeployment(
                "it is a sandbox's, whose keys are public, and FORETELL_RPC_URL is no dev chain (anvil);"
                " deploy contracts of your own: foretell deploy"
            )
        self.is_fit = True
