"""Deploy all contracts to a chain, once, and write their addresses to a file.

Every step checks whether it is done already, so an interrupted deployment is simply run again. A
chain that holds everything is only checked.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from foretell.chain.deploy_plan import DeployPlan
from foretell.chain.deployed_code import fetch_codes, is_intact
from foretell.chain.planned_contracts import (
    CREATE2_FACTORY,
    SALT,
    PlannedContract,
    PlannedContracts,
    create2_contract,
    plan_contracts,
    whitelist_code,
)
from foretell.chain.role_grants import role_grants
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import quantity_of
from foretell.chain.sandbox.placement import check_sandbox_node, place_planned
from foretell.chain.setup_caller import SetupCaller
from foretell.chain.views import ViewCall, call_views
from foretell.domain.contracts.calldata import MINT
from foretell.domain.contracts.deployment import (
    ContractName,
    DeployedContract,
    Deployment,
    encode_deployment,
    parse_deployment,
)
from foretell.domain.contracts.sandbox_accounts import check_sandbox
from foretell.domain.errors.chain import InvalidDeployment, WrongChain
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.hexadecimal import keccak256, word_of
from foretell.runtime.files import write_atomically

_BALANCE_OF: Final = contract_function("balanceOf(address)", "(uint256)")


async def deploy(rpc: Rpc, plan: DeployPlan, path: Path) -> Deployment:
    """Return the deployment of the file, created or completed if needed.

    A file of an earlier version keeps its contracts, and gets those that it lacks. Refuses a node of
    another chain, a plan that is unsafe there, and a chain that does not hold what the file says; only
    a sandbox that lost its chain is deployed to again.
    """
    await check_chain(rpc, plan)
    planned = plan_contracts(plan)
    journal = load_deployment(path)
    if journal is not None and journal.chain_id != plan.chain_id:
        raise InvalidDeployment(
            f"{path} is for chain {journal.chain_id}, and chain {plan.chain_id} is required"
        )
    if journal is not None and journal.is_complete:
        if await is_intact(rpc, journal):
            return journal if not journal.missing else await _complete(rpc, plan, path, journal)
        if not plan.is_sandbox:
            raise InvalidDeployment(
                f"the contracts on the chain differ from {path}; run foretell deploy --check"
            )
        journal = None
    return await _Deployer(rpc, plan, planned, path, journal).run()


async def _complete(rpc: Rpc, plan: DeployPlan, path: Path, journal: Deployment) -> Deployment:
    """Add the contracts that an earlier version did not deploy.

    Wallets have approved the existing contracts and signed for them, so these stay, with their
    terms, although this version would deploy other ones.
    """
    known = {name: contract.address for name, contract in journal.contracts.items()}
    for name, address in plan.existing.items():
        if known.get(name, address) != address:
            raise InvalidDeployment(
                f"{path} has {name} at {known[name]}, and {address} is required"
            )
    plan = replace(
        plan,
        existing={**plan.existing, **known},
        profiles=journal.profiles,
        safe_factory_name=journal.safe_factory_name,
        creation=journal.creation,
    )
    return await _Deployer(rpc, plan, plan_contracts(plan), path, journal).run()


async def check_chain(rpc: Rpc, plan: DeployPlan) -> None:
    """Refuse another chain than the plan's, and the sandbox's plan on any other node."""
    seen = quantity_of(await rpc.call("eth_chainId"), "eth_chainId")
    if seen != plan.chain_id:
        raise WrongChain(seen, plan.chain_id)
    if plan.is_sandbox:
        check_sandbox(plan.chain_id)
        await check_sandbox_node(rpc)


def load_deployment(path: Path) -> Deployment | None:
    """Return the deployment of a file, complete or not, or None when there is no file."""
    try:
        return parse_deployment(path.read_bytes())
    except FileNotFoundError:
        return None


def store_deployment(path: Path, deployment: Deployment) -> None:
    """Replace the file atomically, and return when it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, encode_deployment(deployment), draft=path.with_suffix(".draft"))


class _Deployer:
    """One run of a deployment."""

    def __init__(
        self,
        rpc: Rpc,
        plan: DeployPlan,
        planned: PlannedContracts,
        path: Path,
        journal: Deployment | None,
    ) -> None:
        self._rpc = rpc
        self._plan = plan
        self._planned = planned
        self._path = path
        self._journal = journal
        self._admin = self._caller(plan.admin_key)
        self._done: dict[ContractName, DeployedContract] = {}

    def _caller(self, key: bytes) -> SetupCaller:
        return SetupCaller(self._rpc, key, self._plan.chain_id, mines=self._plan.is_sandbox)

    async def run(self) -> Deployment:
        await self._check_factory()
        await self._wait_for_earlier()
        start_block = await self._start_block()
        self._record_progress(start_block)
        for names in self._batches():
            await self._deploy_batch(names)
            self._record_progress(start_block)
        whitelists = self._plan.whitelists
        await self._create([create2_contract(whitelist_code(each)) for each in whitelists])
        await self._grant_roles()
        await self._fund()
        deployment = self._deployment(start_block, is_complete=True)
        store_deployment(self._path, deployment)
        return deployment

    async def _wait_for_earlier(self) -> None:
        """Wait for the transactions of an interrupted run, so that none of them is sent twice."""
        plan = self._plan
        keys = [plan.admin_key, *(whitelist.creator_key for whitelist in plan.whitelists)]
        for key in dict.fromkeys([*keys, plan.faucet_key or plan.admin_key]):
            await self._caller(key).wait_for_earlier()

    def _record_progress(self, start_block: int) -> None:
        """Write the contracts deployed so far; a complete file is replaced by a complete one only."""
        if self._journal is None or not self._journal.is_complete:
            store_deployment(self._path, self._deployment(start_block, is_complete=False))

    async def _start_block(self) -> int:
        """Return the first block whose logs are read; 0 in a sandbox, whose chain is short."""
        if self._plan.is_sandbox:
            return 0
        if self._journal is not None:
            return self._journal.start_block
        if self._plan.start_block is not None:
            return self._plan.start_block
        exchange = self._planned.contracts[ContractName.EXCHANGE].address
        if (await fetch_codes(self._rpc, [exchange]))[0]:
            raise InvalidDeployment(
                f"the exchange {exchange} was deployed before, by another deployment file; restore that file"
            )
        return quantity_of(await self._rpc.call("eth_blockNumber"), "eth_blockNumber")

    async def _check_factory(self) -> None:
        if not (await fetch_codes(self._rpc, [CREATE2_FACTORY]))[0]:
            raise InvalidDeployment(f"the chain has no CREATE2 factory at {CREATE2_FACTORY}")

    def _batches(self) -> tuple[Sequence[ContractName], ...]:
        """Return the contracts in two batches: constructors of the second call those of the first."""
        names = list(self._planned.contracts)
        split_at = names.index(ContractName.SAFE_FACTORY)
        return names[:split_at], names[split_at:]

    async def _deploy_batch(self, names: Sequence[ContractName]) -> None:
        planned = [self._planned.contracts[name] for name in names]
        await place_planned(self._rpc, self._admin, planned)
        await self._create(
            [contract for contract in planned if contract.init_code and not contract.is_placed]
        )
        codes = await fetch_codes(self._rpc, [contract.address for contract in planned])
        for name, contract, code in zip(names, planned, codes, strict=True):
            self._check_code(name, contract, code)
            self._done[name] = DeployedContract(contract.address, word_of(keccak256(code)))

    def _check_code(self, name: ContractName, contract: PlannedContract, code: bytes) -> None:
        """Refuse an address without code, or with other code than in an earlier run."""
        if not code:
            raise InvalidDeployment(
                f"there is no contract at {contract.address}, the address of {name}"
            )
        before = None if self._journal is None else self._journal.contracts.get(name)
        found = DeployedContract(contract.address, word_of(keccak256(code)))
        if before is not None and before.address == found.address and before != found:
            raise InvalidDeployment(
                f"the code of {name} at {found.address} is not the code of the artifact"
            )

    async def _create(self, contracts: Sequence[PlannedContract]) -> None:
        codes = await fetch_codes(self._rpc, [contract.address for contract in contracts])
        await self._admin.call_all(
            [
                ContractCall(CREATE2_FACTORY, SALT + (contract.init_code or b""))
                for contract, code in zip(contracts, codes, strict=True)
                if not code
            ]
        )

    async def _grant_roles(self) -> None:
        """Grant the roles that the chain does not show yet, the calls of one key together."""
        grants = list(
            role_grants(self._plan, {name: each.address for name, each in self._done.items()})
        )
        results = await call_views(self._rpc, [grant.view for grant in grants])
        missing = [
            grant for grant, result in zip(grants, results, strict=True) if result != grant.wanted
        ]
        for key in dict.fromkeys(grant.caller_key for grant in missing):
            calls = [grant.call for grant in missing if grant.caller_key == key]
            await self._caller(key).call_all(calls)

    async def _fund(self) -> None:
        """Mint the collateral that each account of a sandbox starts with."""
        plan = self._plan
        if plan.faucet_key is None:
            return
        collateral = self._done[ContractName.COLLATERAL].address
        balances = await call_views(
            self._rpc,
            [ViewCall(collateral, _BALANCE_OF, (account,)) for account in plan.grants_units],
        )
        await self._caller(plan.faucet_key).call_all(
            [
                ContractCall(collateral, MINT.encode(account, units))
                for (account, units), balance in zip(
                    plan.grants_units.items(), balances, strict=True
                )
                if not balance
            ]
        )

    def _deployment(self, start_block: int, *, is_complete: bool) -> Deployment:
        return Deployment(
            chain_id=self._plan.chain_id,
            is_sandbox=self._plan.is_sandbox,
            is_complete=is_complete,
            start_block=start_block,
            contracts=dict(self._done),
            profiles=self._plan.profiles,
            safe_factory_name=self._plan.safe_factory_name,
            safe_init_code_hash=self._planned.safe_init_code_hash,
            creation=self._plan.creation,
            neg_risk_profiles=self._plan.neg_risk_profiles,
        )
