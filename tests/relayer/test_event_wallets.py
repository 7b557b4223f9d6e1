"""Events (neg-risk) through the relayer: proxy and deposit wallets split, convert, merge and redeem."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import pytest
from tests.relayer import test_deposit_wallets, test_proxy_wallets
from tests.relayer.rig import OwnerClient, RelayerRig
from tests.rigs.events import SandboxEvent

from foretell.domain.contracts.calldata import Transfer
from foretell.domain.contracts.safe import InnerCall
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.values.hexadecimal import Address
from foretell.sdk import wallet_calls
from foretell.sdk.contracts import Contracts
from foretell.sdk.proxy_wallet import GAS_LIMIT
from foretell.sdk.wallet_calls import MarketCondition

pytestmark = pytest.mark.anyio

UNIT: Final = 10**6
FUNDS: Final = 100 * UNIT
Execute = Callable[..., Awaitable[str]]


class Encoded(NamedTuple):
    """A call that is encoded already."""

    calldata: bytes

    def encode(self) -> bytes:
        return self.calldata


async def execute_by_proxy(owner: OwnerClient, calls: Sequence[InnerCall], nonce: int) -> str:
    body = await test_proxy_wallets.proxied(owner, *calls, nonce=str(nonce), gas=str(GAS_LIMIT))
    return await owner.submitted(body)


async def execute_by_deposit_wallet(
    owner: OwnerClient, calls: Sequence[InnerCall], nonce: int
) -> str:
    encoded = [(call.to, Encoded(call.calldata)) for call in calls]
    batch = test_deposit_wallets.batch(owner, *encoded, nonce=str(nonce))  # type: ignore[arg-type]
    return await owner.submitted(batch)


@pytest.fixture(params=["proxy", "deposit"])
async def wallet(
    request: pytest.FixtureRequest, rig: RelayerRig, newcomer: OwnerClient
) -> tuple[Address, Execute]:
    """A wallet with collateral, and how its owner has it make calls."""
    if request.param == "proxy":
        address, execute = test_proxy_wallets.wallet_of(newcomer), execute_by_proxy
    else:
        await newcomer.submitted(test_deposit_wallets.creation(newcomer))
        await rig.settle()
        address, execute = test_deposit_wallets.wallet_of(newcomer), execute_by_deposit_wallet
    gift = Transfer(address, FUNDS).encode()
    sandbox = rig.sandbox
    await sandbox.call(sandbox.account(AccountRole.FAUCET), sandbox.deployment.collateral, gift)
    return address, execute


async def test_a_wallet_splits_converts_merges_and_redeems_positions_of_an_event(
    rig: RelayerRig, newcomer: OwnerClient, wallet: tuple[Address, Execute]
) -> None:
    address, execute = wallet
    event = await SandboxEvent.ask(rig.sandbox)
    contracts = Contracts.of(rig.sandbox.deployment)
    condition = MarketCondition(event.markets[0].condition_id, is_neg_risk=True)
    event_id = event.markets[0].neg_risk_market_id
    assert event_id is not None

    async def held() -> list[int]:
        tokens = [(address, str(token)) for each in event.markets for token in each.tokens]
        reader = rig.sandbox.reader
        return [await reader.collateral_units(address), *await reader.token_units(tokens)]

    async def carried_out(nonce: int, *calls: InnerCall) -> list[int]:
        transaction_id = await execute(newcomer, calls, nonce)
        await rig.settle()
        assert (await rig.transaction(transaction_id))["state"] == "STATE_CONFIRMED"
        return [units // UNIT for units in await held()]

    approvals = wallet_calls.approvals(contracts)
    split = wallet_calls.split(contracts, condition, 10 * UNIT)
    assert await carried_out(0, *approvals, split) == [90, 10, 10, 0, 0, 0, 0]
    convert = wallet_calls.convert(contracts, event_id, [0], 4 * UNIT)
    merge = wallet_calls.merge(contracts, condition, 6 * UNIT)
    assert await carried_out(1, convert, merge) == [96, 4, 0, 4, 0, 4, 0]
    await event.answer(0, is_yes=True)
    redeem = wallet_calls.redeem(contracts, condition, [4 * UNIT, 0])
    assert await carried_out(2, redeem) == [100, 0, 0, 4, 0, 4, 0]
