"""Puts everything on a chain, once, and writes down where it is.

Every step looks whether it is done before it is done, so a deployment that broke off is simply run
again. A chain that is furnished already is only looked over.
"""

import enum
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.chain.deploy_plan import (
    CREATE2_FACTORY,
    SALT,
    Blueprint,
    DeployPlan,
    PlannedContract,
    created,
    draw,
    whitelist_code,
)
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import bytes_of, quantity_of
from foretell.chain.sandbox_placement import check_sandbox_node, place_planned
from foretell.chain.setup_caller import SetupCaller
from foretell.chain.views import ViewCall, ask_all
from foretell.domain.contracts.calldata import (
    ADD_ADAPTER,
    ADD_OPERATOR,
    ADD_REGISTRAR,
    MINT,
    REGISTER_WHITELIST,
)
from foretell.domain.contracts.deployment import (
    ContractName,
    DeployedContract,
    Deployment,
    encode_deployment,
    parse_deployment,
)
from foretell.domain.contracts.neg_risk import SET_ORACLE
from foretell.domain.contracts.sandbox_accounts import check_sandbox
from foretell.domain.errors.chain import DeploymentUnfit, WrongChain
from foretell.domain.evm.abi import ContractFunction, contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address, keccak256, word_of

_IS_OPERATOR: Final = contract_function("isOperator(address)", "(bool)")
_IS_REGISTRAR: Final = contract_function("isRegistrar(address)", "(bool)")
_IS_ADAPTER: Final = contract_function("isAdapter(address)", "(bool)")
_BALANCE_OF: Final = contract_function("balanceOf(address)", "(uint256)")
_WHITELIST_OF: Final = contract_function("whitelistOf(address)", "(address)")
_ORACLE: Final = contract_function("oracle()", "(address)")

# Which adapters the oracles and the registry listen to, and whom each operator listens to.
_ADAPTERS: Final[Mapping[ContractName, Sequence[ContractName]]] = MappingProxyType(
    {
        ContractName.DIRECT_RESOLUTION_ORACLE: (
            ContractName.DIRECT_RESOLUTION_ADAPTER,
            ContractName.NEG_RISK_DIRECT_ADAPTER,
        ),
        ContractName.OPTIMISTIC_ORACLE: (
            ContractName.OPTIMISTIC_RESOLUTION_ADAPTER,
            ContractName.NEG_RISK_OPTIMISTIC_ADAPTER,
        ),
        ContractName.MARKET_REGISTRY: (
            ContractName.DIRECT_RESOLUTION_ADAPTER,
            ContractName.OPTIMISTIC_RESOLUTION_ADAPTER,
            ContractName.NEG_RISK_OPERATOR,
            ContractName.NEG_RISK_OPTIMISTIC_OPERATOR,
        ),
    }
)
_ORACLES: Final[Mapping[ContractName, ContractName]] = MappingProxyType(
    {
        ContractName.NEG_RISK_OPERATOR: ContractName.NEG_RISK_DIRECT_ADAPTER,
        ContractName.NEG_RISK_OPTIMISTIC_OPERATOR: ContractName.NEG_RISK_OPTIMISTIC_ADAPTER,
    }
)


async def deploy(rpc: Rpc, plan: DeployPlan, path: Path) -> Deployment:
    """Return the deployment that the file describes, made or completed if need be.

    A file of an earlier version keeps what it names, and gets what it lacks. Refuses a node of
    another chain, a plan that is unsafe there, and a chain that no longer is what the file says; only
    a sandbox that lost its chain is furnished anew.
    """
    await check_chain(rpc, plan)
    blueprint = draw(plan)
    journal = load_deployment(path)
    if journal is not None and journal.chain_id != plan.chain_id:
        raise DeploymentUnfit(f"{path} is of chain {journal.chain_id}, not {plan.chain_id}")
    if journal is not None and journal.is_complete:
        if await is_intact(rpc, journal):
            return journal if not journal.missing else await _complete(rpc, plan, path, journal)
        if not plan.is_sandbox:
            raise DeploymentUnfit(f"the chain does not hold what {path} says")
        journal = None
    return await _Deployer(rpc, plan, blueprint, path, journal).run()


async def _complete(rpc: Rpc, plan: DeployPlan, path: Path, journal: Deployment) -> Deployment:
    """Add what an earlier version did not know to what it made.

    Wallets have allowed the contracts that are there, and signed for them: they stay, with their
    terms, although this version would make other ones.
    """
    made = {name: contract.address for name, contract in journal.contracts.items()}
    for name, address in plan.taken.items():
        if made.get(name, address) != address:
            raise DeploymentUnfit(f"{path} has {name} at {made[name]}, and {address} is wanted")
    plan = replace(
        plan,
        taken={**plan.taken, **made},
        profiles=journal.profiles,
        safe_factory_name=journal.safe_factory_name,
        creation=journal.creation,
    )
    return await _Deployer(rpc, plan, draw(plan), path, journal).run()


async def check_chain(rpc: Rpc, plan: DeployPlan) -> None:
    """Refuse another chain than the plan's, and a sandbox's plan for anything but a sandbox."""
    seen = quantity_of(await rpc.call("eth_chainId"), "eth_chainId")
    if seen != plan.chain_id:
        raise WrongChain(seen, plan.chain_id)
    if plan.is_sandbox:
        check_sandbox(plan.chain_id)
        await check_sandbox_node(rpc)


async def is_intact(rpc: Rpc, deployment: Deployment) -> bool:
    """Return whether the chain holds exactly the code that the deployment names."""
    return all(found == Found.AS_WRITTEN for found in (await compare(rpc, deployment)).values())


class Found(enum.StrEnum):
    """What a chain holds where the file names a contract."""

    AS_WRITTEN = "as written"
    OTHER_CODE = "other code"
    NOTHING = "nothing"


async def compare(rpc: Rpc, deployment: Deployment) -> Mapping[ContractName, Found]:
    """Return what the chain holds where the deployment names contracts; refuse another chain."""
    seen = quantity_of(await rpc.call("eth_chainId"), "eth_chainId")
    if seen != deployment.chain_id:
        raise WrongChain(seen, deployment.chain_id)
    named = deployment.contracts
    codes = await _codes(rpc, [contract.address for contract in named.values()])
    return {
        name: _found(code, contract)
        for (name, contract), code in zip(named.items(), codes, strict=True)
    }


def _found(code: bytes, contract: DeployedContract) -> Found:
    if not code:
        return Found.NOTHING
    is_same = word_of(keccak256(code)) == contract.code_hash
    return Found.AS_WRITTEN if is_same else Found.OTHER_CODE


def load_deployment(path: Path) -> Deployment | None:
    """Return what the file holds, complete or not, or None when there is no file."""
    try:
        return parse_deployment(path.read_bytes())
    except FileNotFoundError:
        return None


def store_deployment(path: Path, deployment: Deployment) -> None:
    """Write the file, the whole of it or nothing, and return when it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        file.write(encode_deployment(deployment))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Grant(NamedTuple):
    """Something that must be so: the view that says whether it is, and the call that makes it so."""

    caller: SetupCaller
    target: Address
    check: ContractFunction
    asked: tuple[object, ...]
    wanted: object
    call: bytes


class _Deployer:
    """One run of a deployment."""

    def __init__(
        self,
        rpc: Rpc,
        plan: DeployPlan,
        blueprint: Blueprint,
        path: Path,
        journal: Deployment | None,
    ) -> None:
        self._rpc = rpc
        self._plan = plan
        self._blueprint = blueprint
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
        self._note(start_block)
        for stage in self._stages():
            await self._make(stage)
            self._note(start_block)
        await self._create([created(whitelist_code(each)) for each in self._plan.whitelists])
        await self._grant_all(self._grants())
        deployment = self._deployment(start_block, is_complete=True)
        store_deployment(self._path, deployment)
        return deployment

    async def _wait_for_earlier(self) -> None:
        """Wait for what an earlier run sent, or what is still to be mined would be made twice."""
        plan = self._plan
        keys = [plan.admin_key, *(whitelist.creator_key for whitelist in plan.whitelists)]
        for key in dict.fromkeys([*keys, plan.faucet_key or plan.admin_key]):
            await self._caller(key).wait_for_earlier()

    def _note(self, start_block: int) -> None:
        """Write down how far it is; a file that can be used stays so until there is a better one."""
        if self._journal is None or not self._journal.is_complete:
            store_deployment(self._path, self._deployment(start_block, is_complete=False))

    async def _start_block(self) -> int:
        """Return the block from which on logs must be read; a sandbox is young, so all of it."""
        if self._plan.is_sandbox:
            return 0
        if self._journal is not None:
            return self._journal.start_block
        if self._plan.start_block is not None:
            return self._plan.start_block
        exchange = self._blueprint.contracts[ContractName.EXCHANGE].address
        if (await _codes(self._rpc, [exchange]))[0]:
            raise DeploymentUnfit(f"the exchange is at {exchange} already: since which block?")
        return quantity_of(await self._rpc.call("eth_blockNumber"), "eth_blockNumber")

    async def _check_factory(self) -> None:
        if not (await _codes(self._rpc, [CREATE2_FACTORY]))[0]:
            raise DeploymentUnfit(f"the chain has no CREATE2 factory at {CREATE2_FACTORY}")

    def _stages(self) -> Iterable[Sequence[ContractName]]:
        """Return the contracts in stages: a constructor may call what an earlier stage made."""
        names = list(self._blueprint.contracts)
        ground = names[: names.index(ContractName.SAFE_FACTORY)]
        return ground, names[len(ground) :]

    async def _make(self, names: Sequence[ContractName]) -> None:
        planned = [self._blueprint.contracts[name] for name in names]
        await place_planned(self._rpc, self._admin, planned)
        await self._create(
            [contract for contract in planned if contract.init_code and not contract.is_placed]
        )
        codes = await _codes(self._rpc, [contract.address for contract in planned])
        for name, contract, code in zip(names, planned, codes, strict=True):
            self._check(name, contract, code)
            self._done[name] = DeployedContract(contract.address, word_of(keccak256(code)))

    def _check(self, name: ContractName, contract: PlannedContract, code: bytes) -> None:
        """Refuse when nothing is there, or something else than an earlier run found there."""
        if not code:
            raise DeploymentUnfit(f"there is no {name} at {contract.address}")
        before = None if self._journal is None else self._journal.contracts.get(name)
        found = DeployedContract(contract.address, word_of(keccak256(code)))
        if before is not None and before.address == found.address and before != found:
            raise DeploymentUnfit(f"the code of {name} at {found.address} has changed")

    async def _create(self, contracts: Sequence[PlannedContract]) -> None:
        codes = await _codes(self._rpc, [contract.address for contract in contracts])
        await self._admin.call_all(
            [
                ContractCall(CREATE2_FACTORY, SALT + (contract.init_code or b""))
                for contract, code in zip(contracts, codes, strict=True)
                if not code
            ]
        )

    def _grants(self) -> Iterable[_Grant]:
        plan, address = self._plan, {name: each.address for name, each in self._done.items()}
        exchanges = (address[ContractName.EXCHANGE], address[ContractName.NEG_RISK_EXCHANGE])
        for function, check, targets, subjects in (
            (ADD_OPERATOR, _IS_OPERATOR, exchanges, plan.operators),
            (ADD_REGISTRAR, _IS_REGISTRAR, exchanges, plan.registrars),
            *(
                (ADD_ADAPTER, _IS_ADAPTER, (address[target],), [address[name] for name in names])
                for target, names in _ADAPTERS.items()
            ),
        ):
            for target, subject in itertools.product(targets, subjects):
                call = function.encode(subject)
                yield _Grant(self._admin, target, check, (subject,), wanted=True, call=call)
        for operator, oracle in _ORACLES.items():
            call = SET_ORACLE.encode(address[oracle])
            yield _Grant(self._admin, address[operator], _ORACLE, (), address[oracle], call)
        registry = address[ContractName.PROPOSER_WHITELIST_REGISTRY]
        for whitelist in plan.whitelists:
            creator = address_of_key(whitelist.creator_key)
            chosen = created(whitelist_code(whitelist)).address
            yield _Grant(
                self._caller(whitelist.creator_key),
                registry,
                _WHITELIST_OF,
                (creator,),
                wanted=chosen,
                call=REGISTER_WHITELIST.encode(chosen),
            )

    async def _grant_all(self, grants: Iterable[_Grant]) -> None:
        wanted = list(grants)
        answers = await ask_all(
            self._rpc, [ViewCall(grant.target, grant.check, grant.asked) for grant in wanted]
        )
        missing = [
            grant for grant, answer in zip(wanted, answers, strict=True) if answer != grant.wanted
        ]
        for caller in dict.fromkeys(grant.caller for grant in missing):
            await caller.call_all(
                [
                    ContractCall(grant.target, grant.call)
                    for grant in missing
                    if grant.caller is caller
                ]
            )
        await self._fund()

    async def _fund(self) -> None:
        """Give each account of a sandbox the collateral that it starts with."""
        plan = self._plan
        if plan.faucet_key is None:
            return
        collateral = self._done[ContractName.COLLATERAL].address
        balances = await ask_all(
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
            safe_init_code_hash=self._blueprint.safe_init_code_hash,
            creation=self._plan.creation,
            neg_risk_profiles=self._plan.neg_risk_profiles,
        )


async def _codes(rpc: Rpc, addresses: Sequence[Address]) -> list[bytes]:
    answers = await rpc.batch([("eth_getCode", [address, "latest"]) for address in addresses])
    return [bytes_of(answer, "eth_getCode") for answer in answers]
