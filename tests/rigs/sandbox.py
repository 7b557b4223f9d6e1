"""A real chain with all contracts, and short calls that set up a test's situation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from foretell.chain.deploy import deploy
from foretell.chain.logs import LogReader
from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc
from foretell.chain.rpc_types import Receipt, receipt_of
from foretell.chain.sandbox.plan import sandbox_plan
from foretell.chain.setup_caller import SetupCaller
from foretell.chain.views import ViewCall, call_view
from foretell.domain.contracts.calldata import (
    ALLOWANCE_UNITS_MAX,
    PRICE_YES,
    Approve,
    ClientCall,
    QuestionTerms,
    Resolution,
    SetApprovalForAll,
    SplitPosition,
    encode_register_token,
)
from foretell.domain.contracts.deployment import ContractName, Deployment
from foretell.domain.contracts.deposit_wallet import DEPLOY_WALLET
from foretell.domain.contracts.safe import create_proxy_digest, encode_create_proxy
from foretell.domain.contracts.sandbox_accounts import (
    SANDBOX_CHAIN_ID,
    AccountRole,
    SandboxAccount,
    sandbox_account,
    sandbox_accounts,
)
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import Address, Bytes32, keccak256, word_of
from foretell.domain.values.tokens import TokenPair, condition_id, token_pair
from foretell.indexer.context import IndexerContext
from foretell.indexer.contracts import IndexedContracts
from foretell.indexer.follow import Step, follow
from foretell.store.database import Database

IS_APPROVED: Final = contract_function("isApprovedForAll(address,address)", "(bool)")


@dataclass(frozen=True, slots=True)
class SandboxMarket:
    """A market of the sandbox's creator."""

    question_id: Bytes32
    condition_id: Bytes32
    tokens: TokenPair
    is_neg_risk: bool = False


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One chain with all contracts."""

    rpc_url: str
    rpc: Rpc
    deployment: Deployment
    reader: Reader

    def account(self, role: AccountRole) -> SandboxAccount:
        return sandbox_account(role, SANDBOX_CHAIN_ID)

    def trader(self, number: int = 0) -> SandboxAccount:
        return sandbox_accounts(AccountRole.TRADER, SANDBOX_CHAIN_ID)[number]

    def caller(self, account: SandboxAccount) -> SetupCaller:
        """Return an account's caller; it mines, so that chains without automining work too."""
        return SetupCaller(self.rpc, account.private_key, SANDBOX_CHAIN_ID, mines=True)

    async def call(self, account: SandboxAccount, target: Address, calldata: bytes) -> Receipt:
        return await self.caller(account).call(target, calldata)

    async def receipt(self, tx_hash: Bytes32) -> Receipt:
        """Return the receipt of a transaction, which is in a block."""
        receipt = receipt_of(await self.rpc.call("eth_getTransactionReceipt", tx_hash))
        assert receipt is not None
        return receipt

    async def call_all(
        self, account: SandboxAccount, *calls: tuple[Address, ClientCall | QuestionTerms]
    ) -> list[Receipt]:
        """Send several calls of an account, in little more time than one."""
        return await self.caller(account).call_all(
            [ContractCall(target, call.encode()) for target, call in calls]
        )

    async def ask(self, title: str = "Will it rain?") -> SandboxMarket:
        """Ask a question as the creator, with its fee, and register its tokens for trading."""
        deployment, creator = self.deployment, self.account(AccountRole.CREATOR)
        adapter = deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
        fee = Approve(adapter, deployment.creation.fee_units)
        terms = QuestionTerms(title.encode(), deployment.collateral)
        await self.call_all(creator, (deployment.collateral, fee), (adapter, terms))
        text = f"{title},initializer:{creator.address[2:]}".encode()
        question_id = word_of(keccak256(text))
        condition = condition_id(adapter, question_id)
        tokens = token_pair(deployment.collateral, condition)
        registration = encode_register_token(tokens, condition)
        await self.call(self.account(AccountRole.REGISTRAR), deployment.exchange, registration)
        return SandboxMarket(question_id, condition, tokens)

    async def answer(self, market: SandboxMarket, price: int = PRICE_YES) -> Receipt:
        """Answer a question as the proposer, which is final."""
        question = await self.reader.question(market.question_id)
        assert question is not None
        adapter = self.deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
        resolution = Resolution(
            adapter, market.question_id, question.asked_at_s, question.ancillary_data, price
        )
        oracle = self.deployment.address(ContractName.DIRECT_RESOLUTION_ORACLE)
        return await self.call(self.account(AccountRole.PROPOSER), oracle, resolution.encode())

    async def allow(self, account: SandboxAccount, spender: Address) -> None:
        """Approve a contract for all the collateral and all the tokens of an account."""
        await self.call_all(
            account,
            (self.deployment.collateral, Approve(spender, ALLOWANCE_UNITS_MAX)),
            (self.deployment.conditional_tokens, SetApprovalForAll(spender, is_approved=True)),
        )

    async def is_approved(self, wallet: Address, operator: Address) -> bool:
        """Return whether the operator may move the wallet's outcome tokens."""
        call = ViewCall(self.deployment.conditional_tokens, IS_APPROVED, (wallet, operator))
        return bool(await call_view(self.rpc, call))

    async def split(self, account: SandboxAccount, market: SandboxMarket, units: int) -> Receipt:
        """Split collateral of an account into complete sets of a market."""
        tokens = self.deployment.conditional_tokens
        split = SplitPosition(self.deployment.collateral, market.condition_id, units)
        approval = (self.deployment.collateral, Approve(tokens, units))
        return (await self.call_all(account, approval, (tokens, split)))[-1]

    async def make_safe(self, owner: SandboxAccount) -> Address:
        """Create an owner's Safe as the relayer."""
        factory = self.deployment.safe_factory
        name = self.deployment.safe_factory_name
        digest = create_proxy_digest(factory, name, SANDBOX_CHAIN_ID)
        signature = sign_digest(digest, owner.private_key)
        relayer = self.account(AccountRole.RELAYER)
        await self.call(relayer, factory, encode_create_proxy(signature))
        return self.deployment.safe_of(owner.address)

    async def make_deposit_wallet(self, owner: Address, factory: int = 0) -> Address:
        """Create an owner's deposit wallet of a factory as the relayer."""
        target = self.deployment.deposit_wallet_factories[factory]
        await self.call(self.account(AccountRole.RELAYER), target, DEPLOY_WALLET.encode(owner))
        return self.deployment.deposit_wallets_of(owner)[factory]

    async def mine(self, blocks: int = 1) -> None:
        """Mine blocks with the pending transactions."""
        for _ in range(blocks):
            await self.rpc.send("evm_mine")


async def deploy_sandbox(rpc_url: str, rpc: Rpc, npm_folder: Path, folder: Path) -> Sandbox:
    """Deploy all contracts to the chain and return it."""
    deployment = await deploy(rpc, sandbox_plan(npm_folder), folder / "deployment.json")
    return Sandbox(rpc_url, rpc, deployment, Reader(rpc, deployment))


def an_indexer(
    sandbox: Sandbox, database: Database, rpc: Rpc | None = None, **fields: Any
) -> IndexerContext:
    """Return an indexer of the sandbox as after a start: its only memory is the tables."""
    deployment = sandbox.deployment
    rpc = rpc or sandbox.rpc
    values: dict[str, Any] = {
        "database": database,
        "reader": Reader(rpc, deployment),
        "logs": LogReader(rpc, deployment.kind_by_contract()),
        "contracts": IndexedContracts.of(deployment),
        "start_block": deployment.start_block,
        "poll_interval_s": 0.01,
    }
    return IndexerContext(**(values | fields))


async def catch_up(context: IndexerContext) -> Step:
    """Follow the chain until nothing is left to read."""
    while (step := await follow(context)).is_behind:
        pass
    return step
