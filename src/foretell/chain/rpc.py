"""JSON-RPC with deadlines, and failures that say whether the call may have happened.

A read is repeated when the node does not answer. A broadcast is not, because the first one may have
arrived: it goes through `send`, which leaves an unknown outcome to its caller.

Behind an address each new connection may lead to another node. An answer is believed when the node has named
its chain over the same connection, before it or in the same response; those of another chain count as none.
"""

import asyncio
import copy
import functools
import itertools
import re
from collections.abc import Callable, KeysView, Sequence
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any, Final, Generic, Self, TypeVar

import msgspec

from foretell.chain.connections.node_connections import HttpAnswer, NodeConnections, Unchecked
from foretell.chain.rpc_types import quantity_of
from foretell.domain.errors.chain import (
    AnswerTooLarge,
    ChainUnavailable,
    ExecutionReverted,
    RpcRefused,
    WrongChain,
)
from foretell.domain.errors.node_messages import redacted
from foretell.runtime.backoff import pauses_s

CHAIN_ID: Final = "eth_chainId"
READ_ATTEMPTS_MAX: Final = 3
TIMEOUT_S: Final = 10.0
"""How long a node may be silent."""
RETRY_S: Final = 0.1
RETRY_S_MAX: Final = 0.2
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
CALLS_PER_BATCH_MAX: Final = 100
CHAIN_ID_BYTES_MAX: Final = 1024
"""The bytes that the answer to a request may have in addition for the chain's id."""
UNCHECKED_MAX: Final = 3
"""After so many unchecked connections a request takes the question for the chain with it."""
DECODERS_KEPT_MAX: Final = 16
NOT_ADMITTED: Final = "it has not answered since the start, so that its chain is not checked yet"

_REVERTED_CODES: Final = frozenset({3, -32015})
"""The codes of a call that a contract reverted or that broke off: of most nodes, and of Nethermind."""
_HALTED: Final = re.compile(
    "revert|evm error|out ?of ?gas|invalid (?:opcode|jump)|stack (?:under|over)flow|stack limit reached"
    "|return data out of bounds|gas uint64 overflow|invalid code: must not begin"
)
"""The words of nodes for a call that a contract reverted, or that broke off in the middle."""

_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError)
"""The errors of reading an answer; one that is nested too deeply is the second."""


class _Error(msgspec.Struct):
    code: int
    message: str
    data: Any = None


T = TypeVar("T")
R = TypeVar("R")


Gate = Callable[[str], AbstractAsyncContextManager[None]]
"""Admits one request of this method to the node at a time, for as long as the block that it opens."""


class _Answer(msgspec.Struct, Generic[T]):
    id: int
    result: T | None = None
    error: _Error | None = None


class _Numbered(msgspec.Struct):
    id: int


class Rpc:
    """A connection to one node, which has to be of the chain with this id, if one is given."""

    def __init__(
        self,
        url: str,
        chain_id: int | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:
        self._answer_bytes_max = answer_bytes_max
        self._url = url
        self._chain_id = chain_id
        self._ids = itertools.count(1)
        self._http = NodeConnections(url, timeout_s=timeout_s)
        self.gate: Gate | None = None
        self.admitted: asyncio.Event | None = None

    @property
    def url(self) -> str:
        """The node's address, which may hold a key: for a child process, through a pipe, never for a log."""
        return self._url

    def behind(self, gate: Gate) -> "Rpc":
        """Return these connections for requests that a gate admits; they are closed with this one."""
        gated = copy.copy(self)
        gated.gate = gate
        return gated

    def held_until(self, admitted: asyncio.Event) -> "Rpc":
        """Return these connections for requests that are not sent before an event: they fail as if the node were silent."""
        held = copy.copy(self)
        held.admitted = admitted
        return held

    async def wait_admitted(self) -> None:
        """Return when requests are sent to the node."""
        if self.admitted is not None:
            await self.admitted.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def call(self, method: str, *params: object) -> Any:
        """Return the result of a read, requested up to `READ_ATTEMPTS_MAX` times."""
        return await self._repeated(Any, method, params)

    async def call_as(self, kind: type[T], method: str, *params: object) -> T | None:
        """Return the result of such a read, decoded as this type, or None for null.

        That is a good deal faster than decoding it to dicts and converting them.

        Raises ChainUnavailable when the result has another shape.
        Raises AnswerTooLarge when the answer is beyond the bound of all answers: ask for less.
        """
        return await self._repeated(kind, method, params, self._answer_bytes_max)

    async def _repeated(
        self, kind: type[T], method: str, params: Sequence[object], bytes_max: int | None = None
    ) -> T | None:
        for pause_s in itertools.islice(pauses_s(RETRY_S, RETRY_S_MAX), READ_ATTEMPTS_MAX - 1):
            try:
                return await self._send_as(kind, method, params, bytes_max)
            except AnswerTooLarge:
                raise
            except ChainUnavailable:
                await asyncio.sleep(pause_s)
        return await self._send_as(kind, method, params, bytes_max)

    async def send(self, method: str, *params: object, answer_bytes_max: int | None = None) -> Any:
        """Return the result of a call that is sent exactly once.

        An answer of more than `answer_bytes_max` bytes is not read to its end.

        Raises AnswerTooLarge for such an answer.
        """
        return await self._send_as(Any, method, params, answer_bytes_max)

    async def _send_as(
        self,
        kind: type[T],
        method: str,
        params: Sequence[object],
        answer_bytes_max: int | None = None,
    ) -> T | None:
        request_id = next(self._ids)
        body = _request(request_id, method, params)
        read = functools.partial(_answer_to, request_id, kind, method)
        return _result(method, await self._post(method, body, read, answer_bytes_max))

    async def batch(self, calls: Sequence[tuple[str, Sequence[object]]]) -> list[Any]:
        """Return the results of several reads in their order, in as few round trips as possible."""
        return await self._batched(Any, calls)

    async def batch_as(
        self, kind: type[T], calls: Sequence[tuple[str, Sequence[object]]]
    ) -> list[T | None]:
        """Return the results of such reads, each decoded as this type, or None for null.

        Raises AnswerTooLarge when the answers are beyond the bound together: ask for fewer at once.
        """
        return await self._batched(kind, calls, self._answer_bytes_max)

    async def _batched(
        self,
        kind: type[T],
        calls: Sequence[tuple[str, Sequence[object]]],
        bytes_max: int | None = None,
    ) -> list[T | None]:
        results: list[T | None] = []
        for start in range(0, len(calls), CALLS_PER_BATCH_MAX):
            part = calls[start : start + CALLS_PER_BATCH_MAX]
            answers = await self._answers(kind, part, bytes_max)
            results += [_result(method, answer) for method, answer in answers]
        return results

    async def send_all(
        self, calls: Sequence[tuple[str, Sequence[object]]], *, answer_bytes_max: int | None = None
    ) -> list[Any]:
        """Return the results of calls that are sent exactly once, in one request and in their order.

        In the place of a call that the node refuses is the refusal, an `RpcRefused`.

        Raises AnswerTooLarge when the answers have more than `answer_bytes_max` bytes together.
        """
        assert len(calls) <= CALLS_PER_BATCH_MAX
        answers = await self._answers(Any, calls, answer_bytes_max)
        return [_outcome(method, answer) for method, answer in answers]

    async def _answers(
        self,
        kind: type[T],
        calls: Sequence[tuple[str, Sequence[object]]],
        bytes_max: int | None = None,
    ) -> list[tuple[str, _Answer[T]]]:
        call_by_id = {next(self._ids): call for call in calls}
        body = [_request(id_, *call) for id_, call in call_by_id.items()]
        read = functools.partial(_answers_to, call_by_id.keys(), kind)
        answer_by_id = await self._post("batch", body, read, bytes_max)
        return [(call[0], answer_by_id[id_]) for id_, call in call_by_id.items()]

    async def _post(
        self,
        method: str,
        body: object,
        read: Callable[[bytearray], R],
        bytes_max: int | None = None,
    ) -> R:
        if self.admitted is not None and not self.admitted.is_set():
            raise ChainUnavailable(method, NOT_ADMITTED)
        try:
            if self.gate is None:
                return await self._post_at_once(method, body, read, bytes_max)
            async with self.gate(method):
                return await self._post_at_once(method, body, read, bytes_max)
        except AnswerTooLarge as error:
            if bytes_max is not None:
                raise
            # A caller that names no bound asks for nothing that it could make smaller.
            raise ChainUnavailable(method, f"more than {self._answer_bytes_max} bytes") from error

    async def _post_at_once(
        self,
        method: str,
        body: object,
        read: Callable[[bytearray], R],
        bytes_max: int | None,
    ) -> R:
        sent = msgspec.json.encode(body)
        size_max = bytes_max or self._answer_bytes_max
        if self._chain_id is None:
            return await self._read(method, await self._http.post(method, sent, size_max), read)
        for attempt in range(UNCHECKED_MAX):
            try:
                answer = await self._http.post(
                    method, sent, size_max, needs_checked=True, is_repeated=attempt > 0
                )
            except Unchecked:
                if attempt + 1 < UNCHECKED_MAX:
                    await self._ask_chain(self._chain_id)
            else:
                return await self._read(method, answer, read)
        # The node, or a proxy, closes its connections, or others use the checked ones.
        return await self._post_with_chain(method, sent, read, size_max, self._chain_id)

    async def _ask_chain(self, wanted: int) -> None:
        """Ask the node behind some connection, most likely a new one, for its chain."""
        request_id = next(self._ids)
        sent = msgspec.json.encode(_request(request_id, CHAIN_ID, ()))
        answer = await self._http.post(CHAIN_ID, sent, CHAIN_ID_BYTES_MAX)
        read = functools.partial(_answer_to, request_id, Any, CHAIN_ID)
        await self._check(await self._read(CHAIN_ID, answer, read), answer.connection, wanted)

    async def _post_with_chain(
        self,
        method: str,
        sent: bytes,
        read: Callable[[bytearray], R],
        bytes_max: int,
        wanted: int,
    ) -> R:
        """Send a request and the question for the chain as one batch, and return the answer to the first."""
        request_id = next(self._ids)
        question = msgspec.json.encode(_request(request_id, CHAIN_ID, ()))
        is_batch = sent.startswith(b"[")
        calls = sent[1:-1] if is_batch else sent
        body = b"[%s,%s]" % (question, calls)
        answer = await self._http.post(method, body, bytes_max + CHAIN_ID_BYTES_MAX)
        split = functools.partial(_without_chain, request_id, method, is_batch=is_batch)
        chain, rest = await self._read(method, answer, split)
        await self._check(chain, answer.connection, wanted)
        return await self._read(method, answer._replace(body=rest), read)

    async def _check(self, answer: _Answer[Any], connection: object, wanted: int) -> None:
        """Refuse the node of another chain that is behind this connection."""
        if answer.error is not None:
            # A refusal of this call is none of the call that it was asked for.
            raise ChainUnavailable(CHAIN_ID, redacted(answer.error.message))
        seen = quantity_of(answer.result, CHAIN_ID)
        if seen != wanted:
            await self._http.discard()
            raise WrongChain(seen, wanted)
        self._http.mark_checked(connection)

    async def _read(self, method: str, answer: HttpAnswer, read: Callable[[bytearray], R]) -> R:
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or _is_limited(answer.status):
            raise ChainUnavailable(method, f"HTTP {answer.status}")
        try:
            return read(answer.body)
        except ChainUnavailable:
            # The connection may be one answer behind; no later request may get the answer to this one.
            await self._http.discard()
            raise


def _answer_to(request_id: int, kind: type[T], method: str, raw: bytearray) -> _Answer[T]:
    answer: _Answer[T] = _decoded(kind, method, raw, is_batch=False)
    if answer.id != request_id:
        raise ChainUnavailable(method, f"answer {answer.id} to request {request_id}")
    return answer


def _answers_to(request_ids: KeysView[int], kind: type[T], raw: bytearray) -> dict[int, _Answer[T]]:
    answers: list[_Answer[T]] = _decoded(kind, "batch", raw, is_batch=True)
    answer_by_id = {answer.id: answer for answer in answers}
    if answer_by_id.keys() != request_ids:
        raise ChainUnavailable("batch", "answers are missing")
    return answer_by_id


def _without_chain(
    request_id: int, method: str, raw: bytearray, *, is_batch: bool
) -> tuple[_Answer[Any], bytearray]:
    """Return the answer with this id, and the others as if only they had been asked for."""
    try:
        parts = msgspec.json.decode(raw, type=list[msgspec.Raw])
        ids = [msgspec.json.decode(part, type=_Numbered).id for part in parts]
        at = ids.index(request_id)
    except (*_UNREADABLE, ValueError) as error:
        raise ChainUnavailable(method, "the answer does not name the chain") from error
    chain = _answer_to(request_id, Any, CHAIN_ID, bytearray(parts.pop(at)))
    rest = bytearray(b",".join(bytes(part) for part in parts))
    return chain, bytearray(b"[%s]" % rest) if is_batch else rest


def _decoded(kind: object, method: str, raw: bytearray, *, is_batch: bool) -> Any:
    """Return the answer, or the answers of a batch, with results of this type."""
    try:
        return _decoder_of(kind, is_batch=is_batch).decode(raw)
    except _UNREADABLE as error:
        raise ChainUnavailable(method, "the answer has another shape") from error


@functools.lru_cache(maxsize=DECODERS_KEPT_MAX)
def _decoder_of(kind: Any, *, is_batch: bool) -> msgspec.json.Decoder[Any]:
    answer = _Answer[kind]
    return msgspec.json.Decoder(list[answer] if is_batch else answer)


def _is_limited(status: int) -> bool:
    """Return whether the node carried out nothing because of a limit of requests, whatever its body says."""
    return status == HTTPStatus.TOO_MANY_REQUESTS


def _request(request_id: int, method: str, params: Sequence[object]) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": list(params)}


def _result(method: str, answer: _Answer[T]) -> T | None:
    error = answer.error
    if error is None:
        return answer.result
    data = error.data if isinstance(error.data, str) else ""
    refusal = ExecutionReverted if _is_revert(error) else RpcRefused
    raise refusal(method, error.code, error.message, data)


def _outcome(method: str, answer: _Answer[Any]) -> Any:
    try:
        return _result(method, answer)
    except RpcRefused as refusal:
        return refusal


def _is_revert(error: _Error) -> bool:
    return error.code in _REVERTED_CODES or _HALTED.search(error.message.lower()) is not None
