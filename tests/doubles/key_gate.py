"""S3's API that refuses what is signed with keys that have ended or were taken away: a layer before moto's server.

moto takes every key, also one that has ended.  Must not know of warehouses.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from txntable.testing.moto_server import LockedMotoServer


class _Gate:
    def __init__(self, application: Any) -> None:
        self._application = application
        self.refused: dict[str, tuple[str, str]] = {}
        self.used, self.turned_away = Counter[str](), Counter[str]()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        key = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]
        if key not in self.refused:
            self.used[key] += 1
            found: Iterable[bytes] = self._application(environ, start_response)
            return found
        self.turned_away[key] += 1
        if "chunked" not in environ.get("HTTP_TRANSFER_ENCODING", ""):
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        status, code = self.refused[key]
        body = f"<Error><Code>{code}</Code><Message>refused by a test</Message></Error>".encode()
        headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
        start_response(status, headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


class GatedServer(LockedMotoServer):
    """moto's server with conditional writes that hold, which knows keys that it does not take.

    Parameters
    ----------
    bucket : str
        At least three characters.
    """

    _gate: _Gate

    @property
    def used(self) -> Counter[str]:
        """Return how many requests were signed with each key, and done."""
        return self._gate.used

    @property
    def turned_away(self) -> Counter[str]:
        """Return how many requests were signed with each key, and refused."""
        return self._gate.turned_away

    def refuse(self, key: str, status: str, code: str) -> None:
        """Refuse from now on what is signed with a key."""
        self._gate.refused[key] = status, code

    def __enter__(self) -> GatedServer:
        super().__enter__()
        assert self._server is not None, "the server has started"
        self._gate = _Gate(self._server.app)
        self._server.app = self._gate
        return self
