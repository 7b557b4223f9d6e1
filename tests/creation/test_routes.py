from typing import Any

import httpx
import pytest
from tests.creation.rig import PICTURE, CreationRig, CreatorClient, error_of

from foretell.creation import responses
from foretell.domain.creation.data_items import parse_item
from foretell.edge.codec import decode
from foretell.store.public_reads.places import PublicReadLimits, ReadKind, WaitBounds

pytestmark = pytest.mark.anyio

GARBAGE_HEADERS = {
    "authorization": "Bearer nothing",
    "service_address": "0x12",
    "service_signature": "garbage",
    "service_timestamp": "-1",
    "service_api_key": "not-a-uuid",
    "service_passphrase": "x",
    "poly_address": "0x12",
    "cookie": "session=stolen",
}


@pytest.mark.spec(66)
async def test_the_root_answers_ok(rig: CreationRig) -> None:
    answer = await rig.http.get("/")

    assert (answer.status_code, answer.content) == (200, b'"OK"')
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.spec(65)
async def test_headers_of_authentication_change_nothing(creator: CreatorClient) -> None:
    creator.rig.http.headers.update(GARBAGE_HEADERS)

    request_id = await creator.finalized()

    assert (await creator.record(request_id))["status"] == "finalized"


@pytest.mark.spec(65, 125)
@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "unknown_route"),
        ("GET", "/market-config/", 200, None),
        ("POST", "/prepare/more", 404, "unknown_route"),
        ("POST", "/", 405, "method_not_allowed"),
        ("GET", "/prepare", 405, "method_not_allowed"),
        ("DELETE", "/pending", 405, "method_not_allowed"),
        ("POST", "/prepare-auth", 400, "validation_error"),
        ("POST", "/prepare", 415, "unsupported_media_type"),
        ("GET", "/pending", 400, "validation_error"),
        ("POST", "/tx-confirm", 400, "validation_error"),
        ("POST", "/finalize", 400, "validation_error"),
        ("GET", "/market-config?strict=true&luck=1", 400, "validation_error"),
        ("GET", "/blobs/none", 404, "blob_not_found"),
        ("GET", "/blobs/" + "a" * 43, 404, "blob_not_found"),
        ("GET", "/blobs/..%2f..%2fetc%2fpasswd/item", 404, None),
    ],
)
async def test_every_refusal_has_code_message_and_details(
    rig: CreationRig, method: str, path: str, status: int, code: str | None
) -> None:
    answer = await rig.http.request(method, path)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert code is None or error_of(answer) == (status, code)


@pytest.mark.spec(67, 125)
@pytest.mark.parametrize("path", ["/prepare-auth", "/tx-confirm", "/finalize"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b'{"creator": 1, "creator": 2}',
        b"[" * 50_000,
        b'{"chainId": NaN}',
    ],
)
async def test_a_body_that_is_no_object_is_refused(
    rig: CreationRig, path: str, body: bytes
) -> None:
    answer = await rig.http.post(path, content=body)

    assert error_of(answer) == (400, "validation_error")
    assert answer.json()["error"]["details"]


@pytest.mark.spec(125)
@pytest.mark.parametrize("path", ["/prepare-auth", "/tx-confirm", "/finalize"])
async def test_a_body_that_is_too_large_is_refused(rig: CreationRig, path: str) -> None:
    answer = await rig.http.post(path, content=b" " * (256 * 1024 + 1))

    assert error_of(answer) == (413, "payload_too_large")


def mutated(body: dict[str, Any], name: str, value: object) -> dict[str, Any]:
    return {key: each for key, each in body.items() if key != name} | (
        {} if value is None else {name: value}
    )


@pytest.mark.spec(67)
@pytest.mark.parametrize("name", ["creator", "chainId", "payloadHash"])
@pytest.mark.parametrize("value", [None, "x", [], {}, True, 1.5])
async def test_each_missing_or_malformed_field_of_a_challenge_request_is_named(
    creator: CreatorClient, name: str, value: object
) -> None:
    body = {"creator": creator.address, "chainId": 80002, "payloadHash": "0x" + "ab" * 32}

    answer = await creator.post("/prepare-auth", mutated(body, name, value))

    assert error_of(answer) == (400, "validation_error")
    assert [each["field"] for each in answer.json()["error"]["details"]] == [name]


@pytest.mark.spec(67)
@pytest.mark.parametrize("path", ["/tx-confirm", "/finalize"])
@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("requestId", None, "requestId"),
        ("requestId", 5, "requestId"),
        ("requestId", "x" * 65, "requestId"),
        ("creator", None, "creator"),
        ("creator", "0x12", "creator"),
        ("txs", "x", "txs"),
        ("txs", {}, "txs"),
        ("txs", [{"id": "a", "hash": "0x" + "ab" * 32}] * 603, "txs"),
        ("txs", [1], "txs/0/id"),
        ("txs", [{"hash": "0x" + "ab" * 32}], "txs/0/id"),
        ("txs", [{"id": "a"}], "txs/0/hash"),
        ("txs", [{"id": "a", "hash": "0x12"}], "txs/0/hash"),
        ("txs", [{"id": "a", "hash": "ab" * 32}], "txs/0/hash"),
    ],
)
async def test_each_malformed_field_of_sent_hashes_is_named(
    creator: CreatorClient, path: str, name: str, value: object, field: str
) -> None:
    body: dict[str, Any] = {"requestId": "x", "creator": creator.address, "txs": []}

    answer = await creator.post(path, mutated(body, name, value))

    assert error_of(answer) == (400, "validation_error")
    assert answer.json()["error"]["details"][0]["field"] == field


@pytest.mark.spec(67)
async def test_only_finalize_may_omit_hashes(creator: CreatorClient) -> None:
    body = {"requestId": "x", "creator": creator.address}

    confirm = await creator.post("/tx-confirm", body)
    finalize = await creator.post("/finalize", body)

    assert error_of(confirm) == (400, "validation_error")
    assert error_of(finalize) == (404, "request_not_found")


@pytest.mark.spec(55, 67)
async def test_a_preparation_answers_with_its_four_keys(creator: CreatorClient) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()

    answer = await creator.send(raw, creator.sign(challenge))

    assert (answer.status_code, answer.json()) == (
        200,
        {
            "requestId": challenge["requestId"],
            "chainId": 80002,
            "creator": creator.address,
            "status": "prepare_in_progress",
        },
    )


async def blob(rig: CreationRig, path: str) -> httpx.Response:
    return await rig.http.get(path)


@pytest.mark.spec(50)
async def test_stored_items_are_served_as_they_are_and_never_change(
    creator: CreatorClient,
) -> None:
    record = await creator.record(await creator.finalized())
    (update,) = record["metadataUpdates"]
    item_id = update["metadataTxId"]

    data = await blob(creator.rig, f"/blobs/{item_id}")
    raw = await blob(creator.rig, f"/blobs/{item_id}/item")

    item = parse_item(raw.content)
    assert update["metadataUri"] == f"local://{item_id}"
    assert (item.item_id, item.data) == (item_id, data.content)
    assert data.headers["content-type"] == "application/json"
    assert raw.headers["content-type"] == "application/octet-stream"
    for answer in (data, raw):
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert data.headers["etag"] != raw.headers["etag"]


@pytest.mark.spec(34)
async def test_the_event_s_image_is_served_within_the_policy(creator: CreatorClient) -> None:
    record = await creator.record(await creator.finalized())
    item_id = record["metadataUpdates"][0]["metadataTxId"]
    document = (await blob(creator.rig, f"/blobs/{item_id}")).json()

    image = await blob(creator.rig, f"/blobs/{document['icon']}")

    assert image.headers["content-type"] == "image/webp"
    assert image.content[8:12] == b"WEBP"
    assert image.content != PICTURE
    assert len(image.content) <= 102_400


async def test_the_interface_is_described(rig: CreationRig) -> None:
    described = (await rig.http.get("/schema/openapi.json")).json()

    assert described["info"]["title"] == "Foretell market creation"
    assert set(described["paths"]) == {
        "/",
        "/limits",
        "/market-config",
        "/validate",
        "/prepare-auth",
        "/prepare",
        "/pending",
        "/tx-confirm",
        "/finalize",
        "/blobs/{blob_id}",
        "/blobs/{blob_id}/item",
    }
    names = [each["name"] for each in described["paths"]["/pending"]["get"]["parameters"]]
    assert names == ["requestId", "creator", "chainId", "strict"]


async def test_no_page_fetches_third_party_scripts(rig: CreationRig) -> None:
    page = await rig.http.get("/schema")

    assert "<script" not in page.text


@pytest.mark.parametrize(
    ("method", "path", "record"),
    [
        ("get", "/market-config", "Config"),
        ("post", "/prepare-auth", "ChallengeResponse"),
        ("post", "/prepare", "OpenedResponse"),
        ("get", "/pending", "Pending"),
        ("post", "/tx-confirm", "Confirmed"),
        ("post", "/finalize", "Finalized"),
    ],
)
async def test_the_type_of_an_answer_is_described(
    rig: CreationRig, method: str, path: str, record: str
) -> None:
    described = (await rig.http.get("/schema/openapi.json")).json()

    answer = described["paths"][path][method]["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    name = schema["$ref"].removeprefix("#/components/schemas/")
    assert name.endswith(record)
    assert described["components"]["schemas"][name]["properties"]


@pytest.mark.parametrize(
    ("path", "media_type"),
    [("/blobs/{blob_id}", "*/*"), ("/blobs/{blob_id}/item", "application/octet-stream")],
)
async def test_a_stored_item_is_described_as_no_json(
    rig: CreationRig, path: str, media_type: str
) -> None:
    described = (await rig.http.get("/schema/openapi.json")).json()

    assert list(described["paths"][path]["get"]["responses"]["200"]["content"]) == [media_type]


async def test_every_answer_is_of_the_type_that_is_described(creator: CreatorClient) -> None:
    http, raw = creator.rig.http, creator.payload()

    decode((await http.get("/market-config")).content, responses.Config)
    challenge = await creator.ask(raw)
    decode(challenge.content, responses.ChallengeResponse)
    begun = await creator.send(raw, creator.sign(challenge.json()))
    request_id = decode(begun.content, responses.OpenedResponse).request_id
    query = {"requestId": request_id}
    decode((await http.get("/pending", params=query)).content, responses.Pending)
    await creator.rig.settle()
    sent = await creator.paid(request_id)
    decode((await creator.confirm(request_id, sent)).content, responses.Confirmed)
    decode((await creator.finalize(request_id)).content, responses.Finalized)
    await creator.rig.settle()
    updates = await creator.execute((await creator.record(request_id))["metadataUpdateTxPlan"])
    decode((await creator.finalize(request_id)).content, responses.Finalized)
    finalized = await creator.finalize(request_id, updates)
    shown = await http.get("/pending", params=query)

    assert decode(finalized.content, responses.Finalized).status == "finalized"
    record = decode(shown.content, responses.Pending).request
    assert record is not None
    assert isinstance(record.prepared, responses.Prepared)


async def test_the_answer_of_an_unknown_creator_is_of_its_type_too(rig: CreationRig) -> None:
    answer = await rig.http.get("/pending", params={"creator": "0x" + "12" * 20})

    assert decode(answer.content, responses.Pending).request is None


async def test_a_request_with_an_idempotency_key_gets_its_first_answer(
    creator: CreatorClient,
) -> None:
    """Without a key the second challenge is another one."""
    http, raw = creator.rig.http, creator.payload()
    plain = [(await creator.ask(raw)).json()["nonce"] for _ in range(2)]
    http.headers["Idempotency-Key"] = "one"
    first, again = [await creator.ask(raw) for _ in range(2)]
    other = await creator.ask(raw + b" ")
    http.headers["Idempotency-Key"] = "two"
    assert len({*plain, first.json()["nonce"]}) == 3
    assert (first.status_code, first.content) == (200, again.content)
    assert error_of(other) == (409, "idempotency_key_reused")
    envelope = creator.sign(first.json())
    sent = [await creator.send(raw, envelope) for _ in range(2)]
    assert [each.status_code for each in sent] == [200, 200]
    assert sent[0].content == sent[1].content


async def test_p1_requests_without_a_signature_use_no_places_of_the_accounts(
    rig: CreationRig,
) -> None:
    creator = rig.creator()
    request_id = await creator.prepared()
    paid = await creator.paid(request_id)
    rig.limits = PublicReadLimits(own=1, own_per_client=1, bounds=WaitBounds(wait_s=0.2))
    await rig.restart()
    async with rig.database.public_reading(ReadKind.OWN):
        answers = [
            await rig.http.get("/pending", params={"requestId": request_id}),
            await rig.http.get("/pending", params={"creator": creator.address}),
            await creator.confirm(request_id, paid),
            await creator.finalize(request_id, paid),
        ]
    assert [each.status_code for each in answers] == [200] * 4
