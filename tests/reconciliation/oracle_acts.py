"""Answers at the optimistic oracle, which traders propose and dispute at random."""

import random
from typing import Final

from tests.indexer.rig import GAS
from tests.rigs.sandbox import Sandbox

from foretell.domain.contracts.calldata import (
    ALLOWANCE_UNITS_MAX,
    PRICE_NO,
    PRICE_YES,
    Approve,
    QuestionTerms,
)
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.oracle import PriceRequest
from foretell.domain.contracts.sandbox_accounts import AccountRole, SandboxAccount
from foretell.domain.values.hexadecimal import Address, keccak256, word_of

TRADERS: Final = 3


class OracleActs:
    """Questions that traders answer; each act is one transaction, and some revert."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self._random = random.Random(seed)
        self._sandbox = sandbox
        self._creator = sandbox.account(AccountRole.CREATOR)
        self._adapter = sandbox.deployment.address(ContractName.OPTIMISTIC_RESOLUTION_ADAPTER)
        self._oracle = sandbox.deployment.address(ContractName.OPTIMISTIC_ORACLE)
        self._asked = 0

    async def open(self) -> None:
        """Allow the fees and the bonds, and ask the first question."""
        for account, spender in (
            (self._creator, self._adapter),
            *((self._sandbox.trader(number), self._oracle) for number in range(TRADERS)),
        ):
            allowed = Approve(spender, ALLOWANCE_UNITS_MAX).encode()
            await self._send(account, self._sandbox.deployment.collateral, allowed)
        await self._ask()
        await self._sandbox.mine()

    async def act(self) -> None:
        """Propose or dispute an answer to the newest question, or ask another one."""
        text = f"Who knows {self._asked}?,initializer:{self._creator.address[2:]}"
        question_id = word_of(keccak256(text.encode()))
        question = await self._sandbox.reader.question(question_id, self._adapter)
        if question is None or self._random.random() < 0.2:
            await self._ask()
            return
        request = PriceRequest(self._adapter, question.asked_at_s, question.ancillary_data)
        account = self._sandbox.trader(self._random.randrange(TRADERS))
        price = self._random.choice([PRICE_YES, PRICE_NO])
        calldata = self._random.choice([request.propose(price), request.dispute()])
        await self._send(account, self._oracle, calldata)

    async def _ask(self) -> None:
        self._asked += 1
        title = f"Who knows {self._asked}?".encode()
        collateral = self._sandbox.deployment.collateral
        terms = QuestionTerms(title, collateral)
        await self._send(self._creator, self._adapter, terms.encode())

    async def _send(self, account: SandboxAccount, target: Address, calldata: bytes) -> None:
        call = {"from": account.address, "to": target, "data": "0x" + calldata.hex(), "gas": GAS}
        await self._sandbox.rpc.send("eth_sendTransaction", call)
