"""Stores to run the contract on, and a stub of S3 that answers what it is told."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.doubles.memory_store import MemoryStore
from txntable.storage.object_store import ObjectStore, StoreSpec
from txntable.storage.open import open_store
from txntable.testing.moto_server import LockedMotoServer

STORES = ["local-full", "local-page-cache", "memory-of-tests", "memory-of-obstore", "s3"]


@pytest.fixture(scope="session")
def moto_server() -> Iterator[LockedMotoServer]:
    with LockedMotoServer() as server:
        yield server


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> ObjectStore:
    """Return each kind of store in turn, empty."""
    name = f"{abs(hash(request.node.nodeid)):x}"
    match request.param:
        case "local-full" | "local-page-cache":
            folder = request.getfixturevalue("tmp_path") / "warehouse"
            return open_store(StoreSpec(str(folder), durability=request.param.removeprefix("local-")))
        case "memory-of-tests":
            return MemoryStore()
        case "memory-of-obstore":
            return open_store(StoreSpec(f"memory://{name}"))
    server = request.getfixturevalue("moto_server")
    return open_store(StoreSpec(f"{server.url}/some folder/{name}", server.storage_options))


@pytest.fixture
def aws_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Take all that is AWS's off the machine; return where its configuration file is looked for."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path / "config"


@dataclass(frozen=True)
class StubbedS3:
    """A server that answers every request with one status."""

    url: str
    answer: dict[str, int | str] = field(default_factory=lambda: {"status": 200, "body": ""})
    requests: list[tuple[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Access key id -> status and body of what is signed with it."""

    def spec(self, **options: str) -> StoreSpec:
        keys = {"aws_access_key_id": "KEY-NAME", "aws_secret_access_key": "KEY-SECRET", "aws_region": "us-east-1"}
        endpoint = {"aws_endpoint_url": self.url, "aws_allow_http": "true", "retry_timeout": "0"}
        return StoreSpec("s3://bucket/prefix", {**keys, **endpoint, **options})


def _handler(stub: Callable[[], StubbedS3]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_request(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            stub().requests.append((self.command, self.path))
            stub().headers.append({name.lower(): value for name, value in self.headers.items()})
            key = self.headers.get("Authorization", "").partition("Credential=")[2].partition("/")[0]
            status, text = stub().refused.get(key, (stub().answer["status"], stub().answer["body"]))
            body = str(text).encode() if self.command != "HEAD" else b""
            self.send_response(int(status))
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"tag"')
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def stubbed_s3() -> Iterator[StubbedS3]:
    stubs: list[StubbedS3] = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(lambda: stubs[0]))
    stubs.append(StubbedS3(f"http://127.0.0.1:{server.server_port}"))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield stubs[0]
    server.shutdown()
    thread.join()
    server.server_close()
