"""An operator's own exchange, on another chain than the sandbox's, used by the SDK alone."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from rich.console import Console
from tests.chain.chains import started
from tests.rigs.in_process import forget_environment, installed, sandbox_settings
from tests.rigs.values import a_key, an_address

from foretell.bench.rigs.ports import free_port
from foretell.chain.artifacts import own_artifact
from foretell.chain.devchain import DevChainOptions
from foretell.cli.deploy import run_deploy
from foretell.domain.contracts.calldata import MINT, TRANSFER
from foretell.domain.errors.command import ApiRefused
from foretell.domain.evm.transaction import ContractCall
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.domain.values.hexadecimal import Address, checksum_address, parse_address
from foretell.sdk.amounts import parse_base_units
from foretell.sdk.chain import ChainAccount
from foretell.sdk.client import Foretell, KeySigner, OrderDraft, OrderType, Side, Urls
from foretell.sdk.http import wait_for
from foretell.sdk.json_rpc import JsonRpc
from foretell.sdk.market_creation import CreatedMarket, Image
from foretell.sdk.orders import PlacedOrder
from foretell.sdk.payloads import NewMarket, binary_payload, picture
from foretell.settings import Settings

pytestmark = pytest.mark.anyio

CHAIN_ID = 31337
EXAMPLES = Path(__file__).parents[2] / "examples"
COINS = hex(10**20)
FUNDS_UNITS = 1000 * UNITS_PER_TOKEN
WITHIN_S = 600.0
NAMES = ("master_key", "operator_key", "registrar_key", "relayer_key", "storage_key", "admin_key")


@pytest.fixture
async def node(
    devchain_options: DevChainOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """A node of an empty chain, which gives coins to the keys of this test."""
    forget_environment(monkeypatch, tmp_path)
    options = replace(
        devchain_options, chain_id=CHAIN_ID, folder=tmp_path / "chain", port=free_port()
    )
    options.folder.mkdir()
    async with started(options) as rpc:
        for name in (*NAMES, "further operator", "creator", "maker", "taker"):
            await rpc.send("anvil_setBalance", KeySigner(a_key(name)).address, COINS)
        await rpc.send("evm_setIntervalMining", 1)
        yield f"http://127.0.0.1:{options.port}"


@pytest.fixture
async def collateral(node: str) -> Address:
    """A token of the operator."""
    admin = KeySigner(a_key("admin_key"))
    async with JsonRpc(node) as rpc:
        account = ChainAccount(rpc, admin, CHAIN_ID)
        code = own_artifact("CollateralToken").init_code("Dollar", "USD", admin.address)
        return parse_address((await account.deploy(code)).contract)


async def mint(node: str, collateral: Address) -> None:
    """Mint collateral to those who trade."""
    async with JsonRpc(node) as rpc:
        account = ChainAccount(rpc, KeySigner(a_key("admin_key")), CHAIN_ID)
        for name in ("creator", "maker", "taker"):
            given = MINT.encode(KeySigner(a_key(name)).address, FUNDS_UNITS)
            await account.call(ContractCall(collateral, given))


def operators_settings(folder: Path, node: str, collateral: Address) -> Settings:
    """Return the settings of an operator, whose contracts are deployed by the command."""
    keys = {name: SecretStr(a_key(name).hex()) for name in NAMES}
    settings = sandbox_settings(
        folder,
        rpc_url=SecretStr(node),
        chain_id=CHAIN_ID,
        collateral=collateral,
        fee_receiver=an_address("fees"),
        community_pool=an_address("pool"),
        stores_locally=True,
        confirmations=1,
        operator_keys=SecretStr(a_key("further operator").hex()),
        **keys,
    )
    run_deploy(settings, Console(quiet=True))
    return settings


async def test_a_market_lives_on_a_chain_that_no_client_knows(
    tmp_path: Path, node: str, collateral: Address
) -> None:
    """Domains, contracts and the chain id come from the installation: the SDK has none built in.

    Those who trade got their collateral before the first block that the exchange reads.
    """
    await mint(node, collateral)
    settings = await asyncio.to_thread(operators_settings, tmp_path, node, collateral)
    async with installed(settings):
        urls = Urls.at(settings.base_url, node, {})
        async with Foretell.connect(urls, KeySigner(a_key("creator"))) as creator:
            address = creator.chain.address
            code = own_artifact("ProposerWhitelist").init_code(address, [address])
            await creator.whitelist().create(code)
            assert await creator.whitelist().proposers() == [address]
            creation = creator.creation(tmp_path / "notes")
            draft = NewMarket(address, "Rain?", "rain", "Will it rain?", "2035-06-01T12:00:00Z")
            creation.begin(
                binary_payload(draft), [Image("eventImage", "a.png", picture(), "image/png")]
            )
            (market,) = await creation.run()
            assert await creation.run() == [market]

            await trade_and_redeem(creator, market, urls, collateral)


async def trade_and_redeem(
    creator: Foretell, market: CreatedMarket, urls: Urls, collateral: Address
) -> None:
    """Trade between a deposit wallet, by version 2 of the struct, and a Safe; resolve, and redeem."""
    async with (
        Foretell.connect(urls, KeySigner(a_key("maker")), wallet="deposit wallet") as maker,
        Foretell.connect(urls, KeySigner(a_key("taker")), wallet="safe") as taker,
    ):
        assert maker.trader.chain_id == CHAIN_ID
        await deploy_and_fund(maker, collateral)
        await deploy_and_fund(taker, collateral)
        await until_funded(maker)
        await until_funded(taker)
        assert (await maker.trader.buy(market.token_a, "0.40", "10")).status == "live"
        taken = await taker.trader.place(
            OrderDraft(
                token_id=market.token_b,
                side=Side.BUY,
                price="0.60",
                budget="6",
                order_type=OrderType.FOK,
            )
        )
        (trade,) = await taker.trader.wait_until_settled(taken.order_id)
        assert (trade.status, trade.size) == ("CONFIRMED", "10")
        gained_units = await trade_with_a_market_maker(creator, taker, market)

        listed = await creator.apis.discovery.market("rain")
        await creator.resolver().resolve(listed.row, "second")
        await until_closed(creator)
        assert [each.condition_id for each in await taker.redeem_all()] == [listed.condition_id]
        funds = await taker.trader.collateral()
        assert checksum_address(taker.trader.maker) == funds.wallet
        assert await balance_is(taker, FUNDS_UNITS + 4 * UNITS_PER_TOKEN + gained_units)


async def trade_with_a_market_maker(
    creator: Foretell, taker: Foretell, market: CreatedMarket
) -> int:
    """Run the market maker of the examples with the creator's key, and take No from what it quotes.

    Return what the tokens pay above their cost if No is true.
    """
    await creator.deploy_wallet()
    key = Path("maker.key")
    await asyncio.to_thread(key.write_text, a_key("creator").hex())
    urls = creator.apis.urls
    own = {
        "FORETELL_URL": urls.clob.removesuffix("/clob"),
        "FORETELL_RPC_URL": urls.rpc,
        "FORETELL_KEY_FILE": str(key),
        "FORETELL_MARKET": "rain",
    }
    rounds = "1000"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(EXAMPLES / "market_maker.py"), rounds),
        env={**os.environ, **own},
        stdout=asyncio.subprocess.PIPE,
    )
    try:

        async def fetch_taken() -> PlacedOrder | None:
            """Try to take: quotes are renewed while an order is on its way."""
            placed = await taker.trader.place(
                OrderDraft(
                    token_id=market.token_b,
                    side=Side.BUY,
                    price="0.60",
                    budget="3",
                    order_type=OrderType.FAK,
                )
            )
            return placed if placed.status == "matched" else None

        fetch = refused_is_none(fetch_taken)
        taken = await wait_for("a trade with the market maker", fetch, WITHIN_S)
        process.send_signal(signal.SIGINT)
        printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert b": live, live" in printed
    assert re.search(rb"canceled \d+ orders\n$", printed)
    assert await creator.trader.open_orders() == []
    (trade,) = await taker.trader.wait_until_settled(taken.order_id)
    assert trade.status == "CONFIRMED"
    assert {each["maker_address"] for each in trade.maker_orders} == {
        checksum_address(creator.trader.maker)
    }
    got, gave = (
        parse_base_units(each, "amount") for each in (taken.taking_amount, taken.making_amount)
    )
    return got - gave


def refused_is_none(
    call: Callable[[], Awaitable[PlacedOrder | None]],
) -> Callable[[], Awaitable[PlacedOrder | None]]:
    """Return the call, with None in place of a refusal: nothing is quoted yet."""

    async def refused() -> PlacedOrder | None:
        with contextlib.suppress(ApiRefused):
            return await call()
        return None

    return refused


async def deploy_and_fund(foretell: Foretell, collateral: Address) -> None:
    """Deploy the wallet, and send it the collateral of its owner."""
    wallet = await foretell.deploy_wallet()
    sent = ContractCall(collateral, TRANSFER.encode(wallet, FUNDS_UNITS))
    await foretell.chain.call(sent)


async def until_funded(foretell: Foretell) -> None:
    async def fetch_funded() -> bool | None:
        funds = await foretell.trader.collateral()
        is_allowed = all(int(units) for units in funds.allowances.values())
        return True if int(funds.balance) == FUNDS_UNITS and is_allowed else None

    await wait_for("the funds", fetch_funded, WITHIN_S)


async def until_closed(foretell: Foretell) -> None:
    async def fetch_closed() -> bool | None:
        return True if (await foretell.apis.discovery.market("rain")).is_closed else None

    await wait_for("the market to close", fetch_closed, WITHIN_S)


async def balance_is(foretell: Foretell, units: int) -> bool:
    async def fetch_balance() -> bool | None:
        return True if int((await foretell.trader.collateral()).balance) == units else None

    return await wait_for("the winnings", fetch_balance, WITHIN_S)
