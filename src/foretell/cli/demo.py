"""`foretell demo`: plays the demo on a running sandbox."""

import msgspec
import uvloop
from rich.console import Console

from foretell.domain.contracts.deployment import Deployment, parse_deployment
from foretell.sandbox.demo.dispute import play_dispute
from foretell.sandbox.demo.event import play_event
from foretell.sandbox.demo.session import DemoSession
from foretell.sandbox.demo.story import play
from foretell.sandbox.ready import read_ready
from foretell.settings import Settings


def run_demo(
    settings: Settings, console: Console, *, is_all: bool = False, worker_url: str | None = None
) -> None:
    """Play the market, or also the event and the dispute, on the sandbox of the data folder.

    Markets are created by its worker, or by the one of a URL.
    """
    ready = read_ready(settings.data)
    if worker_url is not None:
        ready = msgspec.structs.replace(ready, worker=worker_url)
    deployment = parse_deployment(settings.deployment_file.read_bytes())

    async def run(deployment: Deployment) -> None:
        async with DemoSession.open(ready, deployment, console=console) as session:
            await play(session)
            if is_all:
                await play_event(session)
                await play_dispute(session)

    uvloop.run(run(deployment))
