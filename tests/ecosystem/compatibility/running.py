"""Runs a client's program and says of each public method whether it works."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tests.ecosystem.clients import Raised, Refused
from tests.ecosystem.compatibility.page import GREEN
from tests.ecosystem.compatibility.programs import Step
from tests.ecosystem.compatibility.reasons import reason_of

Call = Callable[[Step], Awaitable[Any]]
OF_THE_TESTS = "set_api_creds"
"""The clients in TypeScript have no such method: a new one is made."""


async def results_of(program: Iterable[Step], methods: Iterable[str], call: Call) -> dict[str, str]:
    """Return the result of each public method; one that the program does not call fails."""
    public = set(methods)
    results: dict[str, str] = {}
    unexplained: list[str] = []
    for step in program:
        if step.method not in {*public, OF_THE_TESTS}:
            continue
        result, words = await result_of(step, call)
        if step.method not in public:
            continue
        if result != GREEN:
            reason = reason_of(step.method)
            unexplained += [] if reason else [f"{step.method}: {words}"]
            result += f": {reason}"
        assert results.setdefault(step.method, result) == result, (step, words)
    assert not unexplained, f"reasons.py does not say why: {unexplained}"
    assert not public - set(results), "methods that no step calls"
    return results


async def result_of(step: Step, call: Call) -> tuple[str, str]:
    """Return the words for the result of one step, and all that was said."""
    try:
        answer = await call(step)
    except Refused as refused:
        code = refused.error["code"] if isinstance(refused.error, dict) else refused.error
        if refused.status not in range(400, 500):
            raise
        return f"refused, {refused.status} `{code}`", str(refused)
    except Raised as raised:
        return "not applicable", str(raised)
    for each in answer if isinstance(answer, list) else [answer]:
        if isinstance(each, dict):
            assert each.get("success", True), (step, each)
            assert not each.get("not_canceled"), (step, each)
    return GREEN, ""
