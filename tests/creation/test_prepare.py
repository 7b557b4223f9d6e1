import asyncio
import io
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from PIL import Image
from tests.creation.rig import PICTURE, CreationRig, CreatorClient, details_of, error_of
from tests.rigs.pictures import a_moving_picture, a_picture
from tests.rigs.values import NOW_MS, a_word
from typing_extensions import override

from foretell.creation.render import render_challenge
from foretell.domain.contracts.calldata import ALLOWANCE_UNITS_MAX, Approve
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.domain.creation.data_items import DataItem
from foretell.domain.creation.payload import payload_hash
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS, Challenge
from foretell.domain.values.hexadecimal import keccak256
from foretell.media.blobs import BlobStore
from foretell.media.headers import read_header
from foretell.store.creation.challenges import record_challenge
from foretell.store.creation.requests import load_images

pytestmark = pytest.mark.anyio

TOO_LARGE = b"\x89PNG\r\n\x1a\n" + bytes(2_097_153)


def a_bomb() -> bytes:
    encoded = io.BytesIO()
    Image.new("1", (12_000, 12_000)).save(encoded, "PNG")
    return encoded.getvalue()


@pytest.mark.spec(42, 57, 69, 78)
@pytest.mark.parametrize(
    ("altered", "refusal"),
    [
        ({"requestId": "00000000-0000-4000-8000-000000000000"}, (404, "request_not_found")),
        ({"nonce": "0x" + "ab" * 32}, (401, "auth_invalid")),
        ({"expiresAt": 1}, (401, "auth_invalid")),
        ({"payloadHash": "0x" + "ab" * 32}, (401, "auth_invalid")),
        ({"signature": "0x" + "11" * 65}, (401, "auth_invalid")),
        ({"signature": "0x"}, (401, "auth_invalid")),
        ({"signature": "0xzz"}, (400, "validation_error")),
        ({"signature": "12" * 65}, (400, "validation_error")),
        ({"nonce": 5}, (400, "validation_error")),
        ({"expiresAt": "soon"}, (400, "validation_error")),
        ({"requestId": None}, (400, "validation_error")),
        ({"payloadHash": None}, (400, "validation_error")),
    ],
)
async def test_an_envelope_altered_in_one_field_leaves_the_challenge_usable(
    creator: CreatorClient, altered: dict[str, Any], refusal: tuple[int, str]
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()

    refused = await creator.send(raw, creator.sign(challenge, **altered))

    assert error_of(refused) == refusal
    assert (await creator.record(challenge["requestId"]))["status"] == "auth_pending"
    assert (await creator.send(raw, creator.sign(challenge))).status_code == 200


@pytest.mark.case("F-03")
@pytest.mark.spec(7, 57)
@pytest.mark.parametrize("changed", [b" %s", b"%s\n", b"\xef\xbb\xbf%s"])
async def test_a_payload_whose_bytes_differ_from_those_hashed_is_refused(
    creator: CreatorClient, changed: bytes
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()

    refused = await creator.send(changed % raw, creator.sign(challenge))

    assert error_of(refused) == (401, "auth_invalid")
    assert (await creator.record(challenge["requestId"]))["status"] == "auth_pending"


@pytest.mark.case("F-03")
@pytest.mark.spec(7)
async def test_a_payload_with_a_byte_order_mark_is_refused_even_when_it_was_hashed(
    creator: CreatorClient,
) -> None:
    raw = b"\xef\xbb\xbf" + creator.payload()
    challenge = (await creator.ask(raw)).json()

    refused = await creator.send(raw, creator.sign(challenge))

    assert error_of(refused) == (400, "validation_error")
    assert details_of(refused)[0][0] == "payload"


@pytest.mark.spec(57, 78)
async def test_a_payload_of_another_creator_or_chain_is_refused(creator: CreatorClient) -> None:
    other = creator.rig.creator(creator.rig.sandbox.trader())
    raw = other.payload()
    challenge = (await creator.ask(raw)).json()

    refused = await creator.send(raw, creator.sign(challenge))

    assert error_of(refused) == (401, "auth_invalid")
    assert (await creator.record(challenge["requestId"]))["status"] == "auth_pending"


@pytest.mark.case("C-16")
@pytest.mark.spec(8, 57)
async def test_a_payload_for_another_chain_than_was_signed_for_is_refused(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    raw = creator.payload()
    challenge = Challenge(
        request_id="6f1c1c1e-6d0e-4a57-9f0c-0d1f7d2f8f01",
        creator=creator.account.address,
        payload_hash=payload_hash(raw),
        nonce=a_word("nonce"),
        expires_at_ms=NOW_MS + 1,
        chain_id=137,
    )
    async with rig.database.writing() as tx:
        await record_challenge(tx, challenge, "client", NOW_MS)

    refused = await creator.send(
        raw, creator.sign(msgspec.to_builtins(render_challenge(challenge)))
    )

    assert error_of(refused) == (400, "validation_error")
    assert details_of(refused) == [("chainId", "must be 137, the chain id of the challenge")]


@pytest.mark.case("C-16")
@pytest.mark.spec(69, 78)
async def test_a_challenge_signed_by_another_wallet_is_refused(creator: CreatorClient) -> None:
    other = creator.rig.creator(creator.rig.sandbox.trader())
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()

    refused = await creator.send(raw, other.sign(challenge))

    assert error_of(refused) == (401, "auth_invalid")


@pytest.mark.spec(57, 69)
async def test_a_challenge_expires_by_the_millisecond_and_only_before_its_first_use(
    creator: CreatorClient,
) -> None:
    clock = creator.rig.clock
    raws = [creator.payload(slug=slug, binaryQuestion=slug) for slug in ("in-time", "late")]
    in_time, late = [(await creator.ask(raw)).json() for raw in raws]

    clock.at_ms += CHALLENGE_LIFETIME_MS
    accepted = await creator.send(raws[0], creator.sign(in_time))
    clock.at_ms += 1
    refused = await creator.send(raws[1], creator.sign(late))
    repeated = await creator.send(raws[0], creator.sign(in_time))

    assert accepted.status_code == 200
    assert error_of(refused) == (401, "auth_expired")
    assert repeated.json() == accepted.json()


@pytest.mark.spec(10, 57)
async def test_every_broken_rule_of_the_payload_is_reported_and_the_challenge_stays(
    creator: CreatorClient,
) -> None:
    raw = creator.payload(title="", slug="!", categories=["a"], resolutionRules="short")
    challenge = (await creator.ask(raw)).json()

    refused = await creator.send(raw, creator.sign(challenge))

    assert error_of(refused) == (400, "validation_error")
    assert [field for field, _ in details_of(refused)] == [
        "title",
        "slug",
        "categories",
        "resolutionRules",
    ]
    assert (await creator.record(challenge["requestId"]))["status"] == "auth_pending"


@pytest.mark.spec(30, 57, 70)
@pytest.mark.parametrize(
    ("images", "refusal", "field"),
    [
        ([], (400, "validation_error"), "eventImage"),
        ([("eventImage", b"")], (400, "validation_error"), "eventImage"),
        (
            [("eventImage", a_picture("GIF", mode="P"))],
            (415, "unsupported_media_type"),
            "eventImage",
        ),
        ([("eventImage", b"<svg/>")], (415, "unsupported_media_type"), "eventImage"),
        ([("eventImage", a_moving_picture("WEBP"))], (415, "unsupported_media_type"), "eventImage"),
        ([("eventImage", a_picture("PNG")[:-30])], (400, "validation_error"), "eventImage"),
        ([("eventImage", a_bomb())], (400, "validation_error"), "eventImage"),
        ([("eventImage", TOO_LARGE)], (413, "payload_too_large"), "eventImage"),
        (
            [("eventImage", PICTURE), ("optionImage:binary", PICTURE)],
            (400, "validation_error"),
            "optionImage:binary",
        ),
        (
            [("eventImage", PICTURE), ("optionImages[]", PICTURE)],
            (400, "validation_error"),
            "optionImages[]",
        ),
        (
            [("eventImage", PICTURE), ("teamLogo:home", PICTURE)],
            (400, "validation_error"),
            "teamLogo:home",
        ),
    ],
)
async def test_a_wrong_image_is_reported_and_the_challenge_stays(
    creator: CreatorClient,
    images: list[tuple[str, bytes]],
    refusal: tuple[int, str],
    field: str,
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()

    refused = await creator.send(raw, creator.sign(challenge), images)

    assert error_of(refused) == refusal
    assert details_of(refused)[0][0] == field
    assert (await creator.record(challenge["requestId"]))["status"] == "auth_pending"


@pytest.mark.spec(30, 34)
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
async def test_each_format_is_accepted_and_stored_as_the_policy_says(
    creator: CreatorClient, kind: str
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    image = a_picture(kind, (700, 500))

    answer = await creator.send(raw, creator.sign(challenge), [("eventImage", image)])

    assert answer.status_code == 200
    async with creator.rig.database.reading() as tx:
        images = await load_images(tx, challenge["requestId"])
    header = read_header("eventImage", images["eventImage"])
    assert (header.kind, header.width_px, header.height_px) == ("WEBP", 256, 256)


@pytest.mark.spec(55, 57)
async def test_a_repeated_preparation_returns_the_status_of_the_request(
    creator: CreatorClient,
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    envelope = creator.sign(challenge)

    async def word() -> str:
        answer = await creator.send(raw, envelope)
        assert answer.status_code == 200
        return str(answer.json()["status"])

    words = [await word(), await word()]
    await creator.rig.settle()
    words.append(await word())
    request_id = challenge["requestId"]
    await creator.finalize(request_id, await creator.paid(request_id))
    words.append(await word())
    await creator.rig.settle()
    words.append(await word())
    updates = (await creator.record(request_id))["metadataUpdateTxPlan"]
    await creator.finalize(request_id, await creator.execute(updates))
    words.append(await word())

    assert words == [
        "prepare_in_progress",
        "prepare_in_progress",
        "prepared",
        "finalize_in_progress",
        "metadata_update_pending",
        "finalized",
    ]


async def test_many_identical_preparations_at_once_are_one(creator: CreatorClient) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    envelope = creator.sign(challenge)

    answers = await asyncio.gather(*(creator.send(raw, envelope) for _ in range(5)))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1


@pytest.mark.case("C-16")
@pytest.mark.parametrize("altered", [{"nonce": "0x" + "ab" * 32}, {"signature": "0x" + "11" * 65}])
async def test_anything_else_on_a_used_challenge_is_refused(
    creator: CreatorClient, altered: dict[str, Any]
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    await creator.send(raw, creator.sign(challenge))

    other_envelope = await creator.send(raw, creator.sign(challenge, **altered))
    other_payload = await creator.send(creator.payload(title="Other"), creator.sign(challenge))

    assert error_of(other_envelope) == (409, "invalid_state")
    assert error_of(other_payload) == (409, "invalid_state")


@pytest.mark.deviation(13)
@pytest.mark.parametrize(
    "images",
    [
        [("eventImage", a_picture("PNG", (61, 40)))],
        [("eventImage", PICTURE), ("optionImages", PICTURE)],
        [],
    ],
)
async def test_another_image_on_a_used_challenge_is_refused(
    creator: CreatorClient, images: list[tuple[str, bytes]]
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    envelope = creator.sign(challenge)
    await creator.send(raw, envelope)
    running = await creator.send(raw, envelope, images)
    await creator.rig.settle()
    prepared = await creator.send(raw, envelope, images)

    assert error_of(running) == error_of(prepared) == (409, "invalid_state")
    assert (await creator.send(raw, envelope)).json()["status"] == "prepared"


SENTENCE = re.compile(r"[\w/:\[\]-]+ (must|is|are|has) [^']+\Z")


@pytest.mark.deviation(25)
@pytest.mark.parametrize(
    "raw",
    [
        b"\xff\xfe",
        b"{",
        b"[]",
        b"{}",
        b'{"sports": {}}',
        b'{"chainId": 5, "categories": ["a"], "endDateIso": "2001-01-01T00:00:00Z"}',
        b'{"marketMode": "multi_unique", "options": [{"id": "a"}, {"id": "a", "slug": "!"}]}',
    ],
)
async def test_every_message_reads_as_a_sentence(creator: CreatorClient, raw: bytes) -> None:
    challenge = (await creator.ask(raw)).json()

    refused = await creator.send(raw, creator.sign(challenge))

    assert SENTENCE.match(refused.json()["error"]["message"])
    assert "codec" not in refused.text
    for field, message in details_of(refused):
        assert SENTENCE.match(f"{field} {message}"), message


async def send_picture(creator: CreatorClient, picture: bytes) -> httpx.Response:
    """Send a payload with this picture of its event."""
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    return await creator.send(raw, creator.sign(challenge), [("eventImage", picture)])


@pytest.mark.deviation(25)
async def test_the_message_of_a_field_does_not_name_it_twice(creator: CreatorClient) -> None:
    """A finding: the details of a wrong query or file began with the name that stands beside them."""
    http = creator.rig.http
    refused = [
        await http.get("/pending"),
        await http.get("/pending?luck=1&strict=true"),
        await http.post("/prepare", content=b""),
        await send_picture(creator, a_picture("GIF", mode="P")),
    ]

    for answer in refused:
        ((field, message),) = details_of(answer)
        assert answer.json()["error"]["message"] == f"{field} {message}"


@pytest.mark.deviation(25)
async def test_a_decoder_s_own_words_are_not_sent(creator: CreatorClient) -> None:
    """A finding: `image file is truncated` is no word of this API."""
    answer = await send_picture(creator, a_picture("PNG")[:-30])

    assert details_of(answer) == [
        (
            "eventImage",
            "must be a picture that can be decoded: its bytes are damaged or incomplete",
        )
    ]


@pytest.mark.spec(58, 44, 45)
async def test_the_plan_appears_when_preparation_ends(creator: CreatorClient) -> None:
    request_id = await creator.prepare()
    before = await creator.record(request_id)

    await creator.rig.settle()
    after = await creator.record(request_id)

    assert (before["status"], "prepared" in before) == ("prepare_running", False)
    assert after["status"] == "prepared"
    assert after["prepared"].keys() == {"requestId", "chainId", "creator", "txPlan"}
    assert [item["id"] for item in after["prepared"]["txPlan"]] == [
        "approve-direct-resolution-fee",
        "initialize-market-1",
    ]


@pytest.mark.spec(47, 75)
async def test_the_plan_sent_as_it_is_succeeds_and_asks_the_question(
    creator: CreatorClient,
) -> None:
    record = await creator.record(await creator.prepared())
    reader = creator.rig.sandbox.reader
    before = await reader.collateral_units(creator.account.address)

    await creator.execute(record["prepared"]["txPlan"])

    text = record["prepared"]["txPlan"][1]["data"]
    question = "q: title: Will it rain in Bergen?, description: "
    assert question.encode().hex() in text
    assert before - await reader.collateral_units(creator.account.address) == 5_000_000


async def test_an_existing_allowance_is_not_approved_again(creator: CreatorClient) -> None:
    sandbox = creator.rig.sandbox
    adapter = sandbox.deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    approval = Approve(adapter, ALLOWANCE_UNITS_MAX).encode()
    await sandbox.call(creator.account, sandbox.deployment.collateral, approval)

    record = await creator.record(await creator.prepared())

    assert [item["id"] for item in record["prepared"]["txPlan"]] == ["initialize-market-1"]


class _StoreAfterACall(BlobStore):
    """A store; before its first item, something happens on the chain."""

    def __init__(self, folder: Path, call: Callable[[], Awaitable[None]]) -> None:
        super().__init__(folder)
        self._calls = [call]

    @override
    async def store(self, item: DataItem) -> str:
        while self._calls:
            await self._calls.pop()()
        return await super().store(item)


async def test_the_plan_is_of_the_chain_after_the_images_are_stored(
    creator: CreatorClient,
) -> None:
    """A finding: the plan approved again what was approved while the images were being stored."""
    sandbox, rig = creator.rig.sandbox, creator.rig
    adapter = sandbox.deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    approval = Approve(adapter, ALLOWANCE_UNITS_MAX).encode()

    async def approve() -> None:
        await sandbox.call(creator.account, sandbox.deployment.collateral, approval)

    rig.change(blobs=_StoreAfterACall(rig.folder / "blobs", approve))
    record = await creator.record(await creator.prepared())

    assert [item["id"] for item in record["prepared"]["txPlan"]] == ["initialize-market-1"]


@pytest.mark.spec(72, 121)
async def test_a_whitelist_registered_while_preparation_runs_lets_it_complete(
    rig: CreationRig,
) -> None:
    account = await rig.newcomer("not yet listed", 5_000_000)
    newcomer = rig.creator(account)
    request_id = await newcomer.prepare()
    for _ in range(3):
        await rig.run_once()
    waiting = await newcomer.record(request_id)

    await rig.whitelist(account)
    await rig.settle(pause_ms=1_000)

    assert (waiting["status"], waiting["errorMessage"]) == ("prepare_running", None)
    assert (await newcomer.record(request_id))["status"] == "prepared"


@pytest.mark.spec(121)
async def test_the_whitelist_is_read_from_the_chain_each_time(rig: CreationRig) -> None:
    account = await rig.newcomer("listed", 5_000_000)
    listed = rig.creator(account)
    snapshot = await rig.sandbox.rpc.send("evm_snapshot")
    await rig.whitelist(account)
    await listed.prepared(listed.payload(slug="first", binaryQuestion="First?"))
    await rig.sandbox.rpc.send("evm_revert", snapshot)

    request_id = await listed.prepare(listed.payload(slug="second", binaryQuestion="Second?"))
    await rig.run_once()

    assert (await listed.record(request_id))["status"] == "prepare_running"


@pytest.mark.spec(122)
async def test_any_whitelisted_creator_passes(rig: CreationRig) -> None:
    account = await rig.newcomer("nobody knows", 5_000_000)
    await rig.whitelist(account)

    assert await rig.creator(account).finalized()


@pytest.mark.spec(6)
async def test_the_operator_s_keys_never_send_an_item_of_the_plan(creator: CreatorClient) -> None:
    sandbox = creator.rig.sandbox
    roles = (AccountRole.REGISTRAR, AccountRole.STORAGE, AccountRole.ADMIN, AccountRole.OPERATOR)
    accounts = [sandbox.account(role).address for role in roles]

    async def nonces() -> list[int]:
        call = "eth_getTransactionCount"
        return [int(await sandbox.rpc.call(call, account, "latest"), 16) for account in accounts]

    before = await nonces()
    await creator.finalized()

    assert [after - was for after, was in zip(await nonces(), before, strict=True)] == [1, 0, 0, 0]


async def test_the_images_of_a_request_are_dropped_once_they_are_stored_or_it_ends(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    stored = await creator.prepared()
    ended = await creator.prepare(creator.payload(slug="other", binaryQuestion="Other?"))
    rig.clock.move(1)
    await creator.prepare(creator.payload(slug="other", binaryQuestion="Other?"))
    before = await images_of(rig, stored, ended)
    await rig.settle()

    assert (await creator.record(ended))["status"] == "failed"
    assert before == [set(), {"eventImage"}]
    assert await images_of(rig, stored, ended) == [set(), set()]


@pytest.mark.deviation(24)
@pytest.mark.parametrize("has_whitelist", [False, True])
async def test_nothing_is_stored_permanently_for_a_creator_that_cannot_pay(
    rig: CreationRig, *, has_whitelist: bool
) -> None:
    stranger = await rig.newcomer("stranger", 0 if has_whitelist else 5_000_000)
    if has_whitelist:
        await rig.whitelist(stranger)
    request_id = await rig.creator(stranger).prepare()
    for _ in range(3):
        await rig.run_once()
    rig.clock.move(rig.options.prepare_deadline_ms)
    await rig.settle(pause_ms=1_000)

    assert (await rig.creator(stranger).record(request_id))["status"] == "failed"
    assert await images_of(rig, request_id) == [set()]
    assert list((rig.folder / "blobs").rglob("*")) == []


async def images_of(rig: CreationRig, *request_ids: str) -> list[set[str]]:
    """Return the fields of the images that wait to be stored, for each request."""
    async with rig.database.reading() as tx:
        return [set(await load_images(tx, each)) for each in request_ids]


@pytest.mark.spec(69)
async def test_the_hash_that_is_signed_is_that_of_the_bytes_sent(creator: CreatorClient) -> None:
    raw = creator.payload(title="Ünï — 雨")

    record = await creator.record(await creator.prepare(raw))

    assert record["payloadHash"] == "0x" + keccak256(raw).hex()
