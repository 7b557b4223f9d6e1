"""Refusals of wrong credentials take the same steps wherever the first wrong character is.

Steps are counted, because times depend on the machine: the interpreter's instructions, and the calls of the
comparison that takes as long for a wrong first byte as for a wrong last one.
"""

import gc
import hmac
import re
import sys
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest
from tests.edge.rig import ALICES, BODY, check, l2_headers
from tests.rigs.values import NOW_S

from foretell.domain.errors.http import L2SignatureMismatch, WrongPassphrase
from foretell.domain.values.credentials import L2Signer
from foretell.edge.auth import KeyRing

pytestmark = pytest.mark.anyio

SIGNATURE = L2Signer(ALICES.secret).sign(str(NOW_S), "POST", "/order", BODY)
OWN = re.compile("/(foretell|tests)/")
"""The interpreter and the libraries do work of their own, now and then."""
PLACES = [0, 1, 20, 40]


class Refusal(NamedTuple):
    """The instructions until a refusal, and the number of comparisons in constant time."""

    steps: list[tuple[CodeType, int]]
    comparisons: int


def refused(act: Callable[[], object], refusal: type[Exception]) -> Refusal:
    """Return what happens below an act until it is refused."""
    steps: list[tuple[CodeType, int]] = []
    comparisons = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode" and OWN.search(frame.f_code.co_filename):
            steps.append((frame.f_code, frame.f_lasti))
        return trace

    def profile(_: FrameType, event: str, called: object) -> None:
        nonlocal comparisons
        comparisons += event == "c_call" and called is hmac.compare_digest

    before = sys.gettrace(), sys.getprofile()
    gc.disable()  # what it collects may run code of its own
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        with pytest.raises(refusal):
            act()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
        gc.enable()
    return Refusal(steps, comparisons)


def wrong_from(text: str, place: int) -> str:
    """Return a text of the same form that is right before a place and wrong from there on."""
    return text[:place] + "".join("b" if each == "a" else "a" for each in text[place:-1]) + text[-1]


def without_waiting(coroutine: Any) -> None:
    """Run a coroutine that has nothing to wait for."""
    coroutine.send(None)


@pytest.mark.case("C-08")
@pytest.mark.parametrize(
    ("name", "right", "refusal"),
    [
        ("passphrase", ALICES.passphrase, WrongPassphrase),
        ("signature", SIGNATURE, L2SignatureMismatch),
    ],
)
async def test_a_refusal_takes_the_same_steps_wherever_a_header_is_wrong(
    ring: KeyRing, name: str, right: str, refusal: type[Exception]
) -> None:
    await check(ring, l2_headers())
    refusals = []
    for place in [0, *PLACES]:
        headers = l2_headers(**{name: wrong_from(right, place)})
        act = partial(ring.authenticate_l2_cached, headers, "POST", "/order", BODY)
        refusals.append(refused(act, refusal))
    assert refusals[0].comparisons > 0
    assert len(refusals[0].steps) > len(right)
    assert all(each == refusals[1] for each in refusals[1:])


@pytest.mark.case("C-08")
@pytest.mark.parametrize("is_secret", [True, False])
async def test_a_login_takes_the_same_steps_wherever_its_secret_or_passphrase_is_wrong(
    ring: KeyRing, *, is_secret: bool
) -> None:
    await check(ring, l2_headers())
    refusals = []
    for place in [0, *PLACES]:
        secret, passphrase = ALICES.secret, ALICES.passphrase
        if is_secret:
            secret = wrong_from(secret, place)
        else:
            passphrase = wrong_from(passphrase, place)
        login = ring.authenticate_credentials(ALICES.key_id, secret, passphrase)
        refusals.append(refused(partial(without_waiting, login), WrongPassphrase))
    assert refusals[0].comparisons == 2
    assert all(each == refusals[1] for each in refusals[1:])


def test_a_comparison_that_ends_early_is_noticed() -> None:
    def compare(text: str) -> None:
        for one, other in zip(text, SIGNATURE, strict=True):
            if one != other:
                raise WrongPassphrase("")

    first, last = (
        refused(partial(compare, wrong_from(SIGNATURE, place)), WrongPassphrase)
        for place in (0, 40)
    )
    assert first.steps != last.steps
    assert first.comparisons == 0
