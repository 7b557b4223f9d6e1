"""`foretell market`: create, list, show and resolve markets."""

import mimetypes
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from foretell.cli.client.options import ClientOptions, client_command
from foretell.cli.client.output import print_fields, print_rows, report
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.values.hexadecimal import Address, checksum_address, keccak256
from foretell.domain.values.slugs import normalize_slug
from foretell.sdk.market_creation import CreatedMarket, Image
from foretell.sdk.payloads import NewMarket, binary_payload, picture
from foretell.sdk.portfolio import ListedMarket, listed_market

NOTES: Final = Path("foretell-creations")
HASH_DIGITS: Final = 16

market = typer.Typer(no_args_is_help=True, help="Create, list, show and resolve markets.")


@client_command(market, "create")
async def create(  # noqa: PLR0913 - the options of a command
    options: ClientOptions,
    payload: Annotated[
        Path | None, typer.Argument(help="File with the payload, as JSON.", exists=True)
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="Question of a Yes/No market, in place of a payload.")
    ] = None,
    ends: Annotated[
        str | None, typer.Option(help="End of that market, such as 2035-06-01T12:00:00Z.")
    ] = None,
    *,
    is_optimistic: Annotated[
        bool,
        typer.Option(
            "--optimistic", help="Anyone proposes its answer with a bond, in place of a proposer."
        ),
    ] = False,
    image: Annotated[
        list[str] | None,
        typer.Option(
            help="Image: FILE for the event, or FIELD=FILE, such as teamLogo:home=a.png.",
            show_default="a plain picture",
        ),
    ] = None,
    notes: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the notes of this creation.",
            show_default=f"{NOTES}/<hash of the payload>",
        ),
    ] = None,
) -> None:
    """Create the markets of a payload, or a Yes/No market of a question.

    The command may be interrupted, or killed, at any time: run it again in the same folder, and it
    continues. `creator` may be absent from the payload. CREATE_MARKET_URL names another worker.
    """
    async with options.foretell(AccountRole.CREATOR) as foretell:
        creator = foretell.chain.address
        text = _payload(creator, payload, question, ends, is_optimistic=is_optimistic)
        folder = notes or NOTES / keccak256(text.encode()).hex()[:HASH_DIGITS]
        creation = foretell.creation(folder, report)
        creation.begin(text, [_image(each) for each in image or [""]])
        report(f"notes: {folder}")
        markets = await creation.run()
    print_rows([_created(each) for each in markets], is_json=options.is_json)


def _payload(
    creator: Address,
    file: Path | None,
    question: str | None,
    ends: str | None,
    *,
    is_optimistic: bool,
) -> str:
    """Return the payload, serialized the same way each time."""
    if file is not None:
        fields = msgspec.json.decode(file.read_bytes())
        return msgspec.json.encode({"creator": checksum_address(creator)} | fields).decode()
    if question is None or ends is None:
        raise typer.BadParameter("name a payload, or --question with --ends")
    stack = ResolutionType.OPTIMISTIC if is_optimistic else ResolutionType.DIRECT
    slug = normalize_slug(question)
    return binary_payload(NewMarket(creator, question, slug, question, ends, stack))


def _image(given: str) -> Image:
    field, found, name = given.rpartition("=")
    if not given:
        return Image("eventImage", "cover.png", picture(), "image/png")
    path = Path(name)
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Image(field if found else "eventImage", path.name, path.read_bytes(), kind)


def _created(made: CreatedMarket) -> dict[str, str]:
    return {
        "market": made.market_key,
        "condition": made.condition_id,
        "first token": made.token_a,
        "second token": made.token_b,
    }


@client_command(market, "list")
async def list_markets(
    options: ClientOptions,
    words: Annotated[str | None, typer.Argument(help="Words to search for.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most markets.")] = 20,
) -> None:
    """List the newest markets, or those of the events that match words."""
    async with options.public() as apis:
        if words is None:
            found = await apis.discovery.markets(limit=limit)
        else:
            events = await apis.discovery.search(words)
            found = [listed_market(row) for event in events for row in event["markets"]][:limit]
    rows = [
        {
            "slug": each.slug,
            "prices": _prices(each),
            "volume": each.row["volume"],
            "closed": each.is_closed,
            "question": each.question,
        }
        for each in found
    ]
    print_rows(rows, is_json=options.is_json)


def _prices(listed: ListedMarket) -> str:
    texts = msgspec.json.decode(listed.row["outcomePrices"], type=list[str])
    named = zip(listed.outcomes, texts, strict=True)
    return ", ".join(f"{outcome} {price}" for outcome, price in named)


MarketName = Annotated[str, typer.Argument(help="Slug or condition id of a market.")]


@client_command(market, "show")
async def show(options: ClientOptions, name: MarketName) -> None:
    """Show a market: its tokens, prices and state."""
    async with options.public() as apis:
        found = await apis.discovery.market(name)
    row: dict[str, Any] = found.row
    fields = {
        "slug": found.slug,
        "question": found.question,
        "condition": found.condition_id,
        "question id": row["questionID"],
        "prices": _prices(found),
        **{
            f"token {outcome}": token
            for outcome, token in zip(found.outcomes, found.token_ids, strict=True)
        },
        "neg-risk": found.is_neg_risk,
        "closed": found.is_closed,
        "end": row.get("endDate", ""),
        "volume": row["volume"],
        "resolution": row.get("umaResolutionStatus", ""),
    }
    print_fields(fields, is_json=options.is_json)
