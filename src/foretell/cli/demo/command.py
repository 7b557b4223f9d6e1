"""`foretell demo`: opens the stage on what runs, and plays."""

import uvloop
from rich.console import Console

from foretell.cli.demo.stage import Stage
from foretell.cli.demo.story import play
from foretell.cli.ready import read_ready
from foretell.domain.deployment import Deployment, parse_deployment
from foretell.settings import Settings


def run_demo(settings: Settings, console: Console) -> None:
    """Play the story against the installation whose data folder the settings name."""
    ready = read_ready(settings.data)
    deployment = parse_deployment(settings.deployment_file.read_bytes())

    async def run(deployment: Deployment) -> None:
        async with Stage.open(ready, deployment, console) as stage:
            await play(stage)

    uvloop.run(run(deployment))
