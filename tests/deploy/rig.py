"""Debian's nginx with the reference configuration, a certificate for this run, and ports of its own."""

import contextlib
import datetime as dt
import ipaddress
import resource
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from foretell.bench.rigs.ports import free_port, is_free

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
CONFIGURATION: Final = DEPLOY / "nginx.conf"
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
MEMORY_BYTES_MAX: Final = 512 * 1024 * 1024
STARTED_WITHIN_S: Final = 60.0
POLL_S: Final = 0.01

MAIN: Final = """
pid {folder}/nginx.pid;
error_log {folder}/error.log;
master_process off;
daemon off;
events {{ worker_connections 1024; }}
http {{
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/unused-fastcgi;
    uwsgi_temp_path {folder}/unused-uwsgi;
    scgi_temp_path {folder}/unused-scgi;
    set_real_ip_from 127.0.0.9;
    real_ip_header X-Seen;
    include {folder}/foretell.conf;
}}
"""


class Proxy(NamedTuple):
    """A running nginx; connections from 127.0.0.9 name the address that it sees in `X-Seen`."""

    port: int
    plain_port: int
    trust: ssl.SSLContext

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def stream_url(self) -> str:
        return f"wss://127.0.0.1:{self.port}"


@contextlib.contextmanager
def proxy_of(
    upstream: str, folder: Path, changes: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Proxy]:
    """Run nginx in front of a host and port until the end of the block.

    `changes` replaces parts of the reference configuration, such as long timeouts.
    """
    program = shutil.which("nginx", path=SYSTEM_PATH)
    if program is None:
        pytest.skip("nginx is not installed; on Debian: apt-get install nginx-light")
    proxy = Proxy(free_port(), free_port(), _certify(folder))
    (folder / "foretell.conf").write_text(_placed(upstream, proxy, folder, changes))
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
    errors = folder / "error.log"
    with errors.open("wb") as output:
        process = subprocess.Popen(
            [program, "-p", folder, "-e", errors, "-c", folder / "nginx.conf"],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        _wait_for(process, proxy, errors)
        yield proxy
    finally:
        process.kill()
        process.wait()


def _placed(upstream: str, proxy: Proxy, folder: Path, changes: Mapping[str, str]) -> str:
    """Return the reference configuration with the addresses, the files and the changes of this run."""
    text = CONFIGURATION.read_text()
    for reference, here in (
        ("server 127.0.0.1:8000;", f"server {upstream};"),
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{proxy.port} ssl http2;"),
        ("listen [::]:443 ssl http2;", ""),
        ("listen 80;", f"listen 127.0.0.1:{proxy.plain_port};"),
        ("listen [::]:80;", ""),
        ("/etc/ssl/exchange.example", str(folder)),
        ("/var/log/nginx/foretell.log", str(folder / "access.log")),
        *changes.items(),
    ):
        assert reference in text, f"{CONFIGURATION.name} has no longer {reference!r}"
        text = text.replace(reference, here)
    return text


def _wait_for(process: "subprocess.Popen[bytes]", proxy: Proxy, errors: Path) -> None:
    ends_at_s = time.monotonic() + STARTED_WITHIN_S
    while is_free(proxy.port):
        assert process.poll() is None, errors.read_text()
        assert time.monotonic() < ends_at_s, "nginx does not listen"
        time.sleep(POLL_S)


def _certify(folder: Path) -> ssl.SSLContext:
    """Write a certificate of this machine with its key, and return a context that trusts it alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "exchange.example")])
    now = dt.datetime.now(dt.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "fullchain.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return ssl.create_default_context(cafile=str(folder / "fullchain.pem"))
