"""Three PostgreSQL servers under Patroni and three members of etcd, all on this machine.

Patroni and etcd come from the distribution: tests/faults/install_patroni.sh installs them.
PostgreSQL does not run as root, so root runs everything as the user `postgres`.
"""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx

from foretell.bench.rigs.ports import free_port

NODES: Final = 3
DATABASE_USER: Final = "postgres"
PASSWORD: Final = "of nobody"
READY_WITHIN_S: Final = 120.0
LOOK_S: Final = 0.1
LOOK_DEADLINE_S: Final = 2.0
PROGRAMS: Final = ("patroni", "etcd")

Found = TypeVar("Found")

# A leader that is silent for `ttl` is replaced. Syncs are off, since the machine stays up.
CLUSTER_SETTINGS: Final[Mapping[str, Any]] = {
    "ttl": 8,
    "loop_wait": 1,
    "retry_timeout": 3,
    "synchronous_mode": True,
    "synchronous_mode_strict": True,
    "primary_start_timeout": 0,
    "postgresql": {
        "use_pg_rewind": True,
        "parameters": {
            "fsync": "off",
            "max_connections": 50,
            "shared_buffers": "16MB",
            "wal_keep_size": "256MB",
            "max_wal_size": "256MB",
        },
    },
}


def binaries() -> Path:
    """Return the folder of programs of the distribution's newest PostgreSQL."""
    return max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: int(each.parent.name))


@dataclass
class Node:
    """One server, and the Patroni that supervises it."""

    name: str
    folder: Path
    port: int = field(default_factory=free_port)
    rest_port: int = field(default_factory=free_port)
    patroni: "subprocess.Popen[bytes] | None" = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self, settings: Mapping[str, Any]) -> None:
        path = self.folder / "patroni.json"
        path.write_text(json.dumps(settings))
        self.patroni = run([shutil.which("patroni") or "patroni", str(path)], self.folder)

    def server_pids(self) -> list[int]:
        """Return the ids of the server's process and of its children."""
        try:
            postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        except (FileNotFoundError, IndexError):
            return []
        return [postmaster, *children_of(postmaster)]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to Patroni and to every process of the server, at once."""
        assert self.patroni is not None
        for pid in (self.patroni.pid, *self.server_pids()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_server(self) -> None:
        """Kill the server alone; Patroni starts it again."""
        for pid in self.server_pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the server and its Patroni."""
        if self.patroni is not None:
            self.signal(signal.SIGKILL)
            self.patroni.wait()
            self.patroni = None


@dataclass
class Cluster:
    """The servers, and the etcd that states which one leads."""

    folder: Path
    nodes: Sequence[Node]
    etcds: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    etcd_ports: list[int] = field(default_factory=list)

    def start(self) -> None:
        self._start_etcd()
        for node in self.nodes:
            self.start_node(node)
        self.until_whole()

    def start_node(self, node: Node) -> None:
        """Start a node, unless it runs."""
        if node.patroni is None:
            node.start(self._settings(node))

    def close(self) -> None:
        for node in self.nodes:
            node.kill()
        for etcd in self.etcds:
            etcd.kill()
            etcd.wait()

    @property
    def url(self) -> str:
        """The URL of the server that leads."""
        hosts = ",".join("127.0.0.1" for _ in self.nodes)
        ports = ",".join(str(node.port) for node in self.nodes)
        user = f"{DATABASE_USER}:{PASSWORD.replace(' ', '%20')}"
        return (
            f"postgresql+asyncpg://{user}@/postgres?host={hosts}&port={ports}"
            "&target_session_attrs=read-write"
        )

    def roles(self) -> dict[str, str]:
        """Return the role of each node that runs, according to the first that answers."""
        for node in self.nodes:
            with contextlib.suppress(httpx.HTTPError, KeyError, ValueError):
                url = f"http://127.0.0.1:{node.rest_port}/cluster"
                answer = httpx.get(url, timeout=LOOK_DEADLINE_S, trust_env=False).json()
                return {
                    member["name"]: member["role"]
                    for member in answer["members"]
                    if member["state"] in {"running", "streaming"}
                }
        return {}

    def primary(self, *, other_than: Node | None = None) -> Node:
        """Wait until another node than that one leads, and return it."""

        def run_once() -> Node | None:
            roles = self.roles()
            others = [node for node in self.nodes if node is not other_than]
            return next((node for node in others if roles.get(node.name) == "leader"), None)

        return until(run_once)

    def until_whole(self) -> None:
        """Wait until all run, one leads and one is its synchronous standby."""
        wanted = sorted(["leader", "sync_standby", *["replica"] * (NODES - 2)])
        until(lambda: sorted(self.roles().values()) == wanted or None, self.roles)

    def _start_etcd(self) -> None:
        self.etcd_ports = [free_port() for _ in range(NODES)]
        peers = [f"http://127.0.0.1:{free_port()}" for _ in range(NODES)]
        members = ",".join(f"etcd{number}={peer}" for number, peer in enumerate(peers))
        for number, (port, peer) in enumerate(zip(self.etcd_ports, peers, strict=True)):
            url = f"http://127.0.0.1:{port}"
            words = [shutil.which("etcd") or "etcd", "--name", f"etcd{number}"]
            words += ["--data-dir", str(self.folder / f"etcd{number}")]
            words += ["--listen-client-urls", url, "--advertise-client-urls", url]
            words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
            words += ["--initial-cluster", members, "--initial-cluster-state", "new"]
            words += ["--enable-v2=true"]
            self.etcds.append(run(words, self.folder))

    def _settings(self, node: Node) -> Mapping[str, Any]:
        login = {"username": DATABASE_USER, "password": PASSWORD}
        rest = f"127.0.0.1:{node.rest_port}"
        server = f"127.0.0.1:{node.port}"
        return {
            "scope": "foretell",
            "name": node.name,
            "restapi": {"listen": rest, "connect_address": rest},
            # Over version 3 of etcd's interface, a Patroni 3.0.2 that was stopped overwrites the
            # name of the next primary with its own, and that one's commits are lost (patroni#2689).
            "etcd": {"hosts": [f"127.0.0.1:{port}" for port in self.etcd_ports]},
            "bootstrap": {
                "dcs": CLUSTER_SETTINGS,
                "initdb": [{"encoding": "UTF8"}, {"auth": "scram-sha-256"}, "data-checksums"],
                "pg_hba": [
                    f"host {what} all 127.0.0.1/32 scram-sha-256" for what in ("all", "replication")
                ],
            },
            "postgresql": {
                "listen": server,
                "connect_address": server,
                "data_dir": str(node.data),
                "bin_dir": str(binaries()),
                "pgpass": str(node.folder / "pgpass"),
                "authentication": {"superuser": login, "replication": login, "rewind": login},
                "parameters": {"unix_socket_directories": str(node.folder)},
            },
        }


def run(words: Sequence[str], folder: Path) -> "subprocess.Popen[bytes]":
    """Start a program as a user that PostgreSQL runs as; its output is in the folder."""
    with (folder / f"log of {Path(words[0]).name}").open("ab") as log:
        return subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            **as_user(),
        )


def as_user() -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    return {"user": DATABASE_USER, "group": DATABASE_USER, "extra_groups": []}


def children_of(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    with contextlib.suppress(OSError):
        return [int(word) for path in threads for word in path.read_text().split()]
    return []


def until(run_once: Callable[[], Found | None], seen: Callable[[], object] = lambda: None) -> Found:
    """Return what a check finds, repeating it until it does; or fail with what is seen."""
    deadline = time.monotonic() + READY_WITHIN_S
    while (found := run_once()) is None:
        assert time.monotonic() < deadline, seen()
        time.sleep(LOOK_S)
    return found


@contextlib.contextmanager
def a_cluster() -> Iterator[Cluster]:
    """Yield a complete cluster, in a folder that its user may enter."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    assert not missing, f"not installed: {missing}; see tests/faults/install_patroni.sh"
    folder = Path(tempfile.mkdtemp(prefix="foretell-patroni-"))
    nodes = [Node(f"node{number}", folder / f"node{number}") for number in range(NODES)]
    for each in (folder, *(node.folder for node in nodes)):
        each.mkdir(exist_ok=True)
        give_away(each)
    cluster = Cluster(folder, nodes)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)


def give_away(folder: Path) -> None:
    """Give a folder to the user who runs the servers alone."""
    folder.chmod(0o700)
    if os.getuid() == 0:
        user = pwd.getpwnam(DATABASE_USER)
        os.chown(folder, user.pw_uid, user.pw_gid)
