"""`foretell order` and `foretell book`: place, cancel and list orders; show and watch a book."""

import contextlib
from typing import Annotated

import msgspec
import typer

from foretell.cli.client.options import ClientOptions, client_command
from foretell.cli.client.output import print_fields, print_json, print_rows
from foretell.domain.errors.command import OrderNotPlaced
from foretell.domain.exchange.order import OrderType, Side
from foretell.sdk.client import PublicApis
from foretell.sdk.orders import BookLevel, OrderDraft

order = typer.Typer(no_args_is_help=True, help="Place, cancel and list orders.")

Name = Annotated[str, typer.Argument(help="Slug or condition id of a market.")]
Outcome = Annotated[str, typer.Argument(help="Outcome, such as Yes.")]


@client_command(order, "place")
async def place(  # noqa: PLR0913, PLR0917 - the options of a command
    options: ClientOptions,
    side: Annotated[str, typer.Argument(help="buy or sell.")],
    name: Name,
    outcome: Outcome,
    price: Annotated[str, typer.Option(help="Limit, such as 0.45.")],
    size: Annotated[str | None, typer.Option(help="Number of tokens.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Collateral to spend, for a buy of type FOK or FAK.")
    ] = None,
    order_type: Annotated[OrderType, typer.Option("--type", help="Time in force.")] = OrderType.GTC,
    expires: Annotated[int, typer.Option(help="For GTD: expiration, in seconds since 1970.")] = 0,
    *,
    is_post_only: Annotated[
        bool, typer.Option("--post-only", help="Refuse the order if it would match at once.")
    ] = False,
    waits: Annotated[
        bool, typer.Option("--wait", help="Wait until its trades are settled.")
    ] = False,
) -> None:
    """Place an order. Amounts are never rounded: a size that has no exact cost is refused."""
    async with options.foretell() as foretell:
        listed = await foretell.apis.discovery.market(name)
        draft = OrderDraft(
            token_id=listed.token(outcome),
            side=_side(side),
            price=price,
            size=size,
            budget=budget,
            order_type=order_type,
            expires_at_s=expires,
            is_post_only=is_post_only,
        )
        placed = await foretell.trader.place(draft)
        if not placed.success:
            raise OrderNotPlaced(placed.error_msg)
        fields = {
            "order": placed.order_id,
            "status": placed.status,
            "given": placed.making_amount or "0",
            "received": placed.taking_amount or "0",
        }
        if waits and placed.status == "matched":
            trades = await foretell.trader.wait_until_settled(placed.order_id)
            fields["settlement"] = ", ".join(sorted({each.status for each in trades}))
    print_fields(fields, is_json=options.is_json)


def _side(text: str) -> Side:
    try:
        return Side[text.upper()]
    except KeyError:
        raise typer.BadParameter("the side is buy or sell") from None


@client_command(order, "cancel")
async def cancel(
    options: ClientOptions,
    order_ids: Annotated[list[str] | None, typer.Argument(help="Ids of orders.")] = None,
    name: Annotated[str | None, typer.Option("--market", help="All orders in a market.")] = None,
    *,
    is_all: Annotated[bool, typer.Option("--all", help="All orders.")] = False,
) -> None:
    """Cancel orders: those named, those in a market, or all."""
    async with options.foretell() as foretell:
        if is_all:
            answer = await foretell.trader.cancel_all()
        elif name is not None:
            listed = await foretell.apis.discovery.market(name)
            answer = await foretell.trader.cancel_market(listed.condition_id)
        elif order_ids:
            answer = await foretell.trader.cancel(*order_ids)
        else:
            raise typer.BadParameter("name orders, --market or --all")
    rows = [{"order": each, "result": "canceled"} for each in answer.canceled]
    rows += [{"order": each, "result": why} for each, why in answer.not_canceled.items()]
    print_rows(rows, is_json=options.is_json)


@client_command(order, "list")
async def list_orders(
    options: ClientOptions,
    name: Annotated[str | None, typer.Option("--market", help="In one market.")] = None,
) -> None:
    """List the orders that are in books."""
    async with options.foretell() as foretell:
        filters = {}
        if name is not None:
            filters["market"] = (await foretell.apis.discovery.market(name)).condition_id
        found = await foretell.trader.open_orders(**filters)
    rows = [
        {
            "order": each.id,
            "side": each.side,
            "outcome": each.outcome,
            "price": each.price,
            "size": each.original_size,
            "matched": each.size_matched,
            "type": each.order_type,
            "market": each.market,
        }
        for each in found
    ]
    print_rows(rows, is_json=options.is_json)


async def book(
    options: ClientOptions,
    name: Name,
    outcome: Outcome,
    levels: Annotated[int, typer.Option(min=1, max=1000, help="Most levels of a side.")] = 10,
    changes: Annotated[
        int | None, typer.Option(min=1, help="With --watch: end after this many changes.")
    ] = None,
    *,
    is_watched: Annotated[
        bool, typer.Option("--watch", help="Print the book after each change, until Ctrl-C.")
    ] = False,
) -> None:
    """Show the book of an outcome. A watched book is exact over lost connections.

    With --json, a watched book is one JSON object in each line.
    """
    async with options.public() as apis:
        token = (await apis.discovery.market(name)).token(outcome)
        if is_watched:
            await _watch(options, apis, token, levels, changes)
            return
        found = await apis.markets.book(token)
    if options.is_json:
        print_json(found)
    else:
        _print_levels(found.bids[::-1], found.asks[::-1], levels)


async def _watch(
    options: ClientOptions, apis: PublicApis, token: str, levels: int, changes: int | None
) -> None:
    seen = 0
    async with contextlib.aclosing(apis.watch_books(token)) as watched:
        async for change in watched:
            bids, asks = change.book.sorted_bids(), change.book.sorted_asks()
            if options.is_json:
                line = {"bids": bids[:levels], "asks": asks[:levels], "hash": change.book.hash}
                typer.echo(msgspec.json.encode(line).decode())
            else:
                _print_levels(bids, asks, levels)
                typer.echo("")
            seen += 1
            if seen == changes:
                return


def _print_levels(bids: list[BookLevel], asks: list[BookLevel], levels: int) -> None:
    """Print the levels of both sides, the best ones in the middle."""
    shown = [("ask", each) for each in reversed(asks[:levels])]
    shown += [("bid", each) for each in bids[:levels]]
    rows = [{"side": side, "price": each.price, "size": each.size} for side, each in shown]
    print_rows(rows, is_json=False)
