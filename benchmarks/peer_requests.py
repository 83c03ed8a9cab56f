"""The requests that Delta's and Iceberg's Python writers make of S3 and of Glue, counted at a server, and kept.

``python -m benchmarks.peer_requests`` writes ``benchmarks/peer_requests.json``, which :mod:`benchmarks.dollars`
reads.  It needs an environment of its own, outside of this repository, since the peers are no dependencies of this
project: :data:`NEEDS`.  Owns what is counted of peers, and in which state of a table; must not know prices.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pyarrow as pa

from txntable.testing.moto_server import LockedMotoServer

KEPT = Path(__file__).with_suffix(".json")
NEEDS = "an environment with `pip install 'PATH[testing]' deltalake 'pyiceberg[glue,pyarrow,s3fs]'`, PATH this checkout"
SIZES = {"8 MiB": 8 << 20, "128 MiB": 128 << 20}
"""Of data files; each is written a little smaller, so that it is no part more."""
_DISTRIBUTIONS = ("deltalake", "pyiceberg", "pyarrow", "s3fs", "moto")
# A table has so many versions before anything is counted, and then so many more.
_BEFORE, _APPENDS = 100, 200
_LOOKS = 10
_FOOTER_BYTES = 64 << 10
_ONE_RECORD = pa.table({"account": pa.array([1]), "note": pa.array([b"x" * 100], pa.binary())})
_BLOCK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class PeerRequests:
    """What one peer asks for, on average.

    Attributes
    ----------
    name : str
        The peer.
    append : dict of str to float
        A transaction of one record to one table, by kind: those of S3, and ``GLUE``.
    data_file : dict of str to float
        Those of them that are to its data file.
    large_files : dict of str to dict
        Name of a size -> the requests to a data file of that size.
    look : dict of str to float
        A look of a reader for something new, where there is nothing.
    metadata_bytes : list of float
        That a transaction writes beside its data file: of the first half of those that are counted, of the second.
    """

    name: str
    append: dict[str, float]
    data_file: dict[str, float]
    large_files: dict[str, dict[str, float]]
    look: dict[str, float]
    metadata_bytes: list[float]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as a server sees it."""

    kind: str
    is_data: bool
    length: int


def asked(environ: Mapping[str, Any]) -> Asked:
    """Return what a request is, by its price: parts, and the begin and end of an upload in parts, cost a PUT."""
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    length = int(environ.get("HTTP_X_AMZ_DECODED_CONTENT_LENGTH") or environ.get("CONTENT_LENGTH") or 0)
    is_data = path.endswith(".parquet") and "/_delta_log/" not in path
    if "HTTP_X_AMZ_TARGET" in environ:
        return Asked("GLUE", False, 0)
    if method == "GET" and {"list-type", "uploads", "prefix"} & set(query):
        return Asked("LIST", False, 0)
    if method == "POST":
        return Asked("DELETE" if "delete" in query else "PUT", is_data, 0)
    return Asked(method, is_data, length if method == "PUT" else 0)


class CountingServer(LockedMotoServer):
    """moto's server, which notes what it is asked."""

    _noted: list[Asked]

    def __enter__(self) -> CountingServer:
        super().__enter__()
        assert self._server is not None, "the server has started"
        self._noted, application = [], self._server.app

        def noting(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            self._noted.append(asked(environ))
            found: Iterable[bytes] = application(environ, start_response)
            return found

        self._server.app = noting
        return self

    def during(self, act: Callable[[], object], times: int = 1) -> list[Asked]:
        """Return what it is asked while something is done so many times."""
        self._noted.clear()
        for _ in range(times):
            act()
        return list(self._noted)


class Delta:
    """deltalake, one writer that goes on with its own view of the table."""

    name = "Delta Lake, deltalake"

    def __init__(self, server: CountingServer) -> None:
        self._module = importlib.import_module("deltalake")
        url = f"{server.url}/delta"
        self._module.write_deltalake(url, _ONE_RECORD.slice(0, 0), storage_options=server.storage_options)
        self._table = self._module.DeltaTable(url, storage_options=server.storage_options)

    def append(self, records: pa.Table) -> None:
        """Commit one version."""
        self._module.write_deltalake(self._table, records, mode="append")

    def look(self) -> None:
        """Look for newer versions."""
        self._table.update_incremental()


class Iceberg:
    """PyIceberg with a Glue catalog, one writer that goes on with its own view of the table."""

    def __init__(self, server: CountingServer, name: str, files: str) -> None:
        self.name = name
        options = server.storage_options
        account = {
            "region": options["AWS_REGION"],
            "access-key-id": options["AWS_ACCESS_KEY_ID"],
            "secret-access-key": options["AWS_SECRET_ACCESS_KEY"],
            "endpoint": server.endpoint,
        }
        properties = {f"{service}.{key}": value for service in ("glue", "s3") for key, value in account.items()}
        glue = importlib.import_module("pyiceberg.catalog.glue")
        catalog = glue.GlueCatalog("glue", **properties, **{"py-io-impl": files})
        space = files.rpartition(".")[2].lower()
        catalog.create_namespace(space)
        self._table = catalog.create_table(f"{space}.t", _ONE_RECORD.schema, location=f"{server.url}/{space}/t")

    def append(self, records: pa.Table) -> None:
        """Commit one snapshot."""
        self._table.append(records)

    def look(self) -> None:
        """Look for a newer snapshot."""
        self._table.refresh()


def _peers(server: CountingServer) -> Iterator[Delta | Iceberg]:
    yield Delta(server)
    yield Iceberg(server, "Iceberg and Glue, PyIceberg", "pyiceberg.io.pyarrow.PyArrowFileIO")
    yield Iceberg(server, "the same with s3fs", "pyiceberg.io.fsspec.FsspecFileIO")


def _counted(server: CountingServer, peer: Delta | Iceberg) -> PeerRequests:
    def append() -> None:
        peer.append(_ONE_RECORD)

    server.during(append, _BEFORE)
    halves = [server.during(append, _APPENDS // 2) for _ in range(2)]
    both = [each for half in halves for each in half]
    return PeerRequests(
        peer.name,
        append=_average(both, _APPENDS),
        data_file=_average([each for each in both if each.is_data], _APPENDS),
        large_files={name: _large(server, peer, size) for name, size in SIZES.items()},
        look=_average(server.during(peer.look, _LOOKS), _LOOKS),
        metadata_bytes=[2 * sum(each.length for each in half if not each.is_data) / _APPENDS for half in halves],
    )


def _large(server: CountingServer, peer: Delta | Iceberg, size: int) -> dict[str, float]:
    blocks = [os.urandom(_BLOCK_BYTES) for _ in range(size // _BLOCK_BYTES - 1)]
    blocks.append(os.urandom(_BLOCK_BYTES - _FOOTER_BYTES))
    records = pa.table({"account": pa.array(range(len(blocks)), pa.int64()), "note": pa.array(blocks, pa.binary())})
    seen = [each for each in server.during(lambda: peer.append(records)) if each.is_data]
    assert 0.95 * size < sum(each.length for each in seen) <= size, "one file of that size"
    return _average(seen, 1)


def _average(seen: list[Asked], times: int) -> dict[str, float]:
    return {kind: number / times for kind, number in sorted(Counter(each.kind for each in seen).items())}


def kept() -> tuple[dict[str, Any], list[PeerRequests]]:
    """Return what is kept: of which day and versions, and what each peer asks for."""
    read: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return read, [PeerRequests(**peer) for peer in read.pop("peers")]


def main() -> None:
    """Count, and keep it."""
    if any(importlib.util.find_spec(name) is None for name in ("deltalake", "pyiceberg", "s3fs")):
        raise SystemExit(f"this needs {NEEDS}")
    with CountingServer() as server:
        peers = [asdict(_counted(server, peer)) for peer in _peers(server)]
    written = {
        "day": datetime.now(UTC).date().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in _DISTRIBUTIONS},
        "appends": _APPENDS,
        "peers": peers,
    }
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(f"kept in {KEPT}")


if __name__ == "__main__":
    main()
