from pathlib import Path

import pytest

from foretell.chain.deploy import deploy
from foretell.chain.deploy_plan import DeployPlan
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.chain.views import ViewCall, call_views
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import (
    FAUCET_UNITS,
    TRADER_UNITS,
    AccountRole,
    sandbox_account,
)
from foretell.domain.evm.abi import contract_function
from foretell.domain.values.hexadecimal import Address

pytestmark = pytest.mark.anyio


def account(role: AccountRole) -> Address:
    return sandbox_account(role, 80002).address


async def test_every_account_has_the_role_of_the_plan(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    adapter = deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    views: list[tuple[Address, str, str, tuple[object, ...], object]] = [
        (
            deployment.exchange,
            "isOperator(address)",
            "(bool)",
            (account(AccountRole.OPERATOR),),
            True,
        ),
        *(
            (
                exchange,
                "isOperator(address)",
                "(bool)",
                (deployment.address(ContractName.BATCH_SETTLER),),
                True,
            )
            for exchange in deployment.exchanges
        ),
        (
            deployment.exchange,
            "isRegistrar(address)",
            "(bool)",
            (account(AccountRole.REGISTRAR),),
            True,
        ),
        (
            deployment.exchange,
            "isOperator(address)",
            "(bool)",
            (account(AccountRole.ADMIN),),
            False,
        ),
        (deployment.exchange, "admin()", "(address)", (), account(AccountRole.ADMIN)),
        (deployment.exchange, "feeReceiver()", "(address)", (), account(AccountRole.TREASURY)),
        (deployment.exchange, "profileCount()", "(uint256)", (), 6),
        (deployment.exchange, "safeFactory()", "(address)", (), deployment.safe_factory),
        (adapter, "creationFee()", "(uint256)", (), 5_000_000),
        (adapter, "communityShareBps()", "(uint256)", (), 8_000),
        (adapter, "communityPool()", "(address)", (), account(AccountRole.COMMUNITY)),
        (adapter, "feeOperator()", "(address)", (), account(AccountRole.TREASURY)),
        (
            deployment.address(ContractName.MARKET_REGISTRY),
            "isAdapter(address)",
            "(bool)",
            (adapter,),
            True,
        ),
        (
            deployment.safe_factory,
            "masterCopy()",
            "(address)",
            (),
            deployment.address(ContractName.SAFE_SINGLETON),
        ),
    ]
    answers = await call_views(
        bare_rpc,
        [
            ViewCall(target, contract_function(signature, outputs), arguments)
            for target, signature, outputs, arguments, _ in views
        ],
    )
    assert answers == [wanted for *_, wanted in views]
    reader = Reader(bare_rpc, deployment)
    whitelist = await reader.proposer_whitelist(account(AccountRole.CREATOR))
    assert whitelist is not None
    assert whitelist.proposers == (account(AccountRole.PROPOSER),)
    assert await reader.collateral_units(account(AccountRole.FAUCET)) == FAUCET_UNITS
    assert await reader.collateral_units(account(AccountRole.TRADER)) == TRADER_UNITS


async def test_the_contracts_of_events_and_of_the_optimistic_stack_are_connected(
    bare_rpc: Rpc, plan: DeployPlan, path: Path
) -> None:
    deployment = await deploy(bare_rpc, plan, path)
    at = deployment.address
    known: list[tuple[Address, str, tuple[object, ...], object]] = [
        (at(ContractName.NEG_RISK_ADAPTER), "wcol()", (), at(ContractName.WRAPPED_COLLATERAL)),
        (at(ContractName.NEG_RISK_ADAPTER), "vault()", (), account(AccountRole.TREASURY)),
        (at(ContractName.WRAPPED_COLLATERAL), "owner()", (), at(ContractName.NEG_RISK_ADAPTER)),
        (deployment.neg_risk_exchange, "getSplitter()", (), at(ContractName.NEG_RISK_ADAPTER)),
        (at(ContractName.OPTIMISTIC_ORACLE), "arbiter()", (), account(AccountRole.ADMIN)),
        (
            at(ContractName.NEG_RISK_OPERATOR),
            "oracle()",
            (),
            at(ContractName.NEG_RISK_DIRECT_ADAPTER),
        ),
        (
            at(ContractName.NEG_RISK_OPTIMISTIC_OPERATOR),
            "oracle()",
            (),
            at(ContractName.NEG_RISK_OPTIMISTIC_ADAPTER),
        ),
    ]
    accepted = (
        (ContractName.DIRECT_RESOLUTION_ORACLE, ContractName.NEG_RISK_DIRECT_ADAPTER),
        (ContractName.OPTIMISTIC_ORACLE, ContractName.OPTIMISTIC_RESOLUTION_ADAPTER),
        (ContractName.OPTIMISTIC_ORACLE, ContractName.NEG_RISK_OPTIMISTIC_ADAPTER),
        (ContractName.MARKET_REGISTRY, ContractName.OPTIMISTIC_RESOLUTION_ADAPTER),
        (ContractName.MARKET_REGISTRY, ContractName.NEG_RISK_OPERATOR),
        (ContractName.MARKET_REGISTRY, ContractName.NEG_RISK_OPTIMISTIC_OPERATOR),
    )
    answers = await call_views(
        bare_rpc,
        [
            *(
                ViewCall(target, contract_function(view, "(address)"), asked)
                for target, view, asked, _ in known
            ),
            *(
                ViewCall(
                    at(target), contract_function("isAdapter(address)", "(bool)"), (at(adapter),)
                )
                for target, adapter in accepted
            ),
        ],
    )
    assert answers == [*(wanted for *_, wanted in known), *(True for _ in accepted)]
