"""A page served on this machine alone, read-only.

Owns who is answered: requests that this machine's own browser makes for the one address that was printed.  That
address has a part that nobody can guess, since other users of the machine reach the same port; and the ``Host`` that a
request names must be this server's own, since a website can let its name lead to 127.0.0.1 (DNS rebinding) and would
then read the page as its own.  Nothing but GET and HEAD is heard, no request's body is read, nothing of a request is
printed.  Must not know what the page shows.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LOOPBACK = "127.0.0.1"
_NAMES = (LOOPBACK, "localhost")
_HTTP_PORT = 80
_PATIENCE_S = 10.0
Answer = Callable[[], tuple[int, bytes]]


class LiveServer(ThreadingHTTPServer):
    """Serves one page; :meth:`serve_forever` runs it, and :meth:`shutdown` of another thread ends that.

    Parameters
    ----------
    answer : callable
        Returns status and body.  A body of status 200 is HTML, any other plain text.
    port : int
        On the loopback interface; 0: any that is free.
    secret : str
        The part of the address that nobody can guess.
    policy : str
        The page's ``Content-Security-Policy``.

    Raises
    ------
    OSError
        The port is taken, or not ours to take.
    """

    daemon_threads = True

    def __init__(self, answer: Answer, port: int, secret: str, policy: str) -> None:
        self.answer, self.path, self.policy = answer, f"/{secret}/", policy
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}{self.path}"

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may call this server."""
        named = {f"{name}:{self.server_port}" for name in _NAMES}
        return frozenset(named | set(_NAMES)) if self.server_port == _HTTP_PORT else frozenset(named)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a browser that goes away is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    server_version, sys_version = "txntable", ""
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_S

    def do_GET(self) -> None:
        self._reply(with_body=True)

    def do_HEAD(self) -> None:
        self._reply(with_body=False)

    def _reply(self, *, with_body: bool) -> None:
        status, body = self._answer()
        self.send_response(status)
        for name, value in self._headers(status, body).items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _answer(self) -> tuple[int, bytes]:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            return 421, b"this server is no other: use the address that txntable ui has printed\n"
        # In the same time whatever differs; a path is of ASCII, or no path of ours.
        if not hmac.compare_digest(self.path.encode("latin-1", "replace"), self.server.path.encode()):
            return 404, b"there is nothing here: use the whole address that txntable ui has printed\n"
        return self.server.answer()

    def _headers(self, status: int, body: bytes) -> dict[str, str]:
        kind = "text/html" if status == 200 else "text/plain"
        return {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": f"{self.server.policy}; frame-ancestors 'none'",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  http.server's name
        """Print nothing: what a request says is another's words."""
