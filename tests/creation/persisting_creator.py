"""A creator's program that can be killed after any step, and continues from its notes.

Arguments: the worker's URL, the node's URL, the creator's key, the payload's file and the notes' file. The notes
have the request's id, the payload and the hashes. After each change of them the program prints the step, and goes
on when it reads a line.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

from foretell.chain.rpc import Rpc
from foretell.chain.setup_caller import SetupCaller
from foretell.domain.contracts.sandbox_accounts import SANDBOX_CHAIN_ID
from foretell.sdk.creation import CreatorClient
from foretell.sdk.http import HttpClient
from foretell.sdk.payloads import picture
from foretell.sdk.signing.signers import KeySigner

POLL_S: Final = 0.05


class Notebook:
    """The notes on the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.request_id = ""
        self.payload = ""
        self.txs: list[dict[str, str]] = []
        if path.exists():
            notes = json.loads(path.read_text())
            self.request_id, self.payload = notes["requestId"], notes["payload"]
            self.txs = notes["txs"]

    def write(self, step: str) -> None:
        """Store the notes, report the step, and wait for the word to go on."""
        notes = {"requestId": self.request_id, "payload": self.payload, "txs": self.txs}
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(notes))
        part.rename(self._path)
        report(step)
        sys.stdin.readline()


def report(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def prepare(client: CreatorClient, notes: Notebook) -> None:
    """Bring the noted request to a worker that works on it; an unsigned one is opened again."""
    if notes.request_id and await client.status(notes.request_id) != "auth_pending":
        return
    challenge = await client.open_request(notes.payload)
    notes.request_id = challenge.request_id
    notes.write("opened")
    images = {"eventImage": ("cover.png", picture(), "image/png")}
    await client.prepare(challenge, notes.payload, images)
    notes.write("prepared")


async def send(client: CreatorClient, notes: Notebook, plan: Any) -> None:
    """Send the items of a plan without a noted hash, and confirm all hashes."""
    done = {tx["id"] for tx in notes.txs}
    for item in plan:
        if item["id"] not in done:
            notes.txs += await client.execute([item])
            notes.write(item["id"])
    await client.confirm(notes.request_id, notes.txs)
    notes.write(f"confirmed {len(notes.txs)}")


async def main(worker: str, node: str, key: str, payload: str, notes: Notebook) -> None:
    if not notes.payload:
        notes.payload = payload
        notes.write("begun")
    async with HttpClient(worker) as http, Rpc(node) as rpc:
        caller = SetupCaller(rpc, bytes.fromhex(key), SANDBOX_CHAIN_ID, mines=True)
        client = CreatorClient(
            http, caller, KeySigner(bytes.fromhex(key)), SANDBOX_CHAIN_ID, POLL_S
        )
        await prepare(client, notes)
        await send(client, notes, await client.wait_for_plan(notes.request_id))
        answer = await client.finalize(notes.request_id)
        notes.write("finalizing")
        if answer["status"] == "metadata_update_pending":
            await send(client, notes, answer["metadataUpdateTxPlan"])
            answer = await client.finalize(notes.request_id)
        report(answer["status"])


if __name__ == "__main__":
    worker, node, key, payload, notes = sys.argv[1:]
    asyncio.run(main(worker, node, key, Path(payload).read_text(), Notebook(Path(notes))))
