"""A server of Unity Catalog's tables on this machine, as its REST interface is described.

It takes what the description says that a table has, and nothing else; pages are short; a table that is there is a
conflict; there is no way to change one.  It asks for a token.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

API = "/api/2.1/unity-catalog/tables"
TOKEN = "a-token"
PAGE = 2
REQUIRED = {"name", "catalog_name", "schema_name", "table_type", "data_source_format", "columns", "storage_location"}
KNOWN = REQUIRED | {"properties", "comment"}
COLUMN = {"name", "type_text", "type_json", "type_name", "position", "nullable"}
COLUMN_KNOWN = COLUMN | {"type_precision", "type_scale", "partition_index", "comment"}
TYPES = {
    *("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING"),
    *("BINARY", "DECIMAL", "ARRAY", "STRUCT", "MAP"),
}


class UnityDouble:
    """The server's tables, and how it is today.

    Attributes
    ----------
    url : str
        The server's.
    tables : dict of str to dict
        Full name -> document, in order.
    asked : list of str
        Methods so far.
    failing : int
        How many requests are yet answered 503.
    """

    def __init__(self) -> None:
        self.url = ""
        self.tables: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.failing = 0
        self._made = 0

    def answer(self, method: str, target: str, token: str | None, body: bytes) -> tuple[int, dict[str, Any]]:
        """Return status and document."""
        self.asked.append(method)
        if self.failing:
            self.failing -= 1
            return 503, {"error_code": "UNAVAILABLE"}
        if token != f"Bearer {TOKEN}":
            return 401, {"error_code": "UNAUTHENTICATED", "message": "no such token"}
        parts = urlsplit(target)
        name = unquote(parts.path.removeprefix(API).lstrip("/"))
        if method == "POST":
            return self._create(json.loads(body))
        if not name:
            return self._list({key: values[0] for key, values in parse_qs(parts.query).items()})
        if name not in self.tables:
            return 404, {"error_code": "TABLE_NOT_FOUND"}
        return 200, self.tables.pop(name) if method == "DELETE" else self.tables[name]

    def _create(self, table: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        sound = table.keys() >= REQUIRED and table.keys() <= KNOWN
        sound = sound and (table["table_type"], table["data_source_format"]) == ("EXTERNAL", "DELTA")
        for column in table.get("columns", ()):
            sound = sound and COLUMN <= column.keys() <= COLUMN_KNOWN and column["type_name"] in TYPES
            sound = sound and json.loads(column["type_json"])["name"] == column["name"]
        if not sound:
            return 400, {"error_code": "INVALID_ARGUMENT", "message": json.dumps(table)}
        name = f"{table['catalog_name']}.{table['schema_name']}.{table['name']}"
        if name in self.tables:
            return 409, {"error_code": "TABLE_ALREADY_EXISTS", "message": name}
        self._made += 1
        self.tables[name] = {**table, "table_id": str(self._made), "owner": "somebody"}
        return 200, self.tables[name]

    def _list(self, asked: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if (asked["catalog_name"], asked["schema_name"]) != ("unity", "lake"):
            return 404, {"error_code": "SCHEMA_NOT_FOUND"}
        first = int(asked.get("page_token", 0))
        there = list(self.tables.values())
        page: dict[str, Any] = {"tables": there[first : first + PAGE]}
        if first + PAGE < len(there):
            page["next_page_token"] = str(first + PAGE)
        return 200, page


@contextmanager
def unity_double() -> Iterator[UnityDouble]:
    """Run the server; it has the schema ``unity.lake``."""
    double = UnityDouble()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, document = double.answer(self.command, self.path, self.headers.get("Authorization"), body)
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self) -> None:
            self.do_GET()

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        double.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield double
        finally:
            server.shutdown()
            thread.join()
