import json
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from tests.edge.documents.conformance import message_name, message_validators
from tests.rigs.trading import TradingRig

from foretell.trading.streams.document import CHANNELS, REPLIES, asyncapi_document

pytestmark = pytest.mark.anyio

SPECS = Path(__file__).parents[2] / "edge" / "generated" / "node_modules" / "@asyncapi" / "specs"
MESSAGES = asyncapi_document()["components"]["messages"]
SENT = [f"{name}.{event_type}" for name, channel in CHANNELS.items() for event_type in channel.sent]
EXAMPLES = {
    name: example["payload"]
    for name, each in MESSAGES.items()
    for example in each.get("examples", ())
}


def test_the_document_is_valid_asyncapi() -> None:
    schema = json.loads((SPECS / "schemas" / "3.0.0-without-$id.json").read_text())
    errors = jsonschema_rs.validator_for(schema).iter_errors(asyncapi_document())
    assert [error.message for error in errors] == []


async def test_the_api_serves_it(rig: TradingRig) -> None:
    answer: httpx.Response = await rig.client.get("/schema/asyncapi.json")
    assert answer.json() == asyncapi_document()
    assert answer.headers["content-type"] == "application/vnd.aai.asyncapi+json"


def test_it_has_every_message_of_all_channels() -> None:
    numbered = ("market", "user")
    assert set(MESSAGES) == {
        *SENT,
        *(f"{name}.{reply}" for name in numbered for reply in REPLIES),
        *(f"{name}.{each}" for name in CHANNELS for each in ("pong", "ping", "refused")),
        *(f"{name}.request" for name in (*numbered, "live")),
        "sports.server_ping",
        "sports.client_pong",
    }


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_message_has_an_example_that_fits_it(name: str) -> None:
    message_validators()[name].validate(EXAMPLES[name])


@pytest.mark.parametrize("name", SENT)
def test_a_message_begins_with_its_number_if_its_stream_can_be_resumed(name: str) -> None:
    example: dict[str, Any] = EXAMPLES[name]
    channel = name.partition(".")[0]
    first = ["sequence", "stream_id", "server_ts_ms", "journal_sequence"]
    assert (list(example)[:4] == first) == CHANNELS[channel].is_numbered
    assert message_name(channel, example) == name


@pytest.mark.parametrize("name", SENT)
def test_a_message_with_another_field_does_not_fit(name: str) -> None:
    example: dict[str, Any] = EXAMPLES[name]
    assert not message_validators()[name].is_valid(example | {"another": 1})
