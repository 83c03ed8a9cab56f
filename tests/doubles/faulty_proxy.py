"""What goes wrong between a client and S3's API: a layer before moto's server that loses, delays and spoils answers.

Owns the order of events at a request: it is noted, a rule is looked for, then the request reaches the server or not,
and its answer the client or not.  Nothing here waits for a time: an answer that is held back is let go by the next
request, or by :meth:`FaultyServer.heal`; a request that was failed and is still under way arrives when
:meth:`FaultyServer.deliver` says so.  Must not know of warehouses.
"""

from __future__ import annotations

import io
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import parse_qsl

from txntable.testing.moto_server import LockedMotoServer

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_OBJECT = re.compile(rb"<Object>.*?<Key>(.*?)</Key>.*?</Object>", re.DOTALL)
_DELETED = b'<?xml version="1.0" encoding="UTF-8"?><DeleteResult>%s</DeleteResult>'
_Answer = tuple[str, list[tuple[str, str]], bytes]


class RequestKind(Enum):
    """What a request asks of S3."""

    GET = "GetObject"
    RANGED_GET = "GetObject, a range"
    HEAD = "HeadObject"
    LIST = "ListObjectsV2"
    PUT = "PutObject"
    CONDITIONAL_PUT = "PutObject, if absent"
    DELETE = "DeleteObject"
    BULK_DELETE = "DeleteObjects"
    CREATE_MULTIPART = "CreateMultipartUpload"
    UPLOAD_PART = "UploadPart"
    COMPLETE_MULTIPART = "CompleteMultipartUpload"
    ABORT_MULTIPART = "AbortMultipartUpload"
    LIST_UPLOADS = "ListMultipartUploads"
    LIST_PARTS = "ListParts"
    OTHER = "of no kind that this project makes"


class HttpFault(Enum):
    """What happens to a request."""

    ERROR_500 = "not done, and answered 500 InternalError"
    SLOW_DOWN = "not done, and answered 503 SlowDown"
    CONFLICT = "not done, and answered 409 ConditionalRequestConflict"
    DENIED = "not done, and answered 403 AccessDenied"
    ABSENT = "not done, and answered 404 NoSuchKey"
    NO_UPLOAD = "not done, and answered 404 NoSuchUpload"
    TIMED_OUT = "not done, and answered 400 RequestTimeout: the body came too slowly"
    ERROR_IN_200 = "not done, and answered 200 with an error in the body"
    RESET_BEFORE = "not done, and the connection is lost"
    LOST_500 = "done, and answered 500 InternalError"
    LOST_412 = "done, and answered 412 PreconditionFailed"
    RESET_AFTER = "done, and the connection is lost"
    TRUNCATED = "done, and half of the answer's body is sent"
    SLOW = "done, and answered when the next request comes"
    LATE = "done when the next request has been answered"
    HELD = "answered 500 InternalError, and done when it is delivered"
    HELD_RESET = "the connection is lost, and done when it is delivered"
    PARTIAL = "a bulk delete: done but for its first object"


_ANSWERS = {
    HttpFault.ERROR_500: ("500 Internal Server Error", "InternalError"),
    HttpFault.LOST_500: ("500 Internal Server Error", "InternalError"),
    HttpFault.HELD: ("500 Internal Server Error", "InternalError"),
    HttpFault.SLOW_DOWN: ("503 Slow Down", "SlowDown"),
    HttpFault.CONFLICT: ("409 Conflict", "ConditionalRequestConflict"),
    HttpFault.DENIED: ("403 Forbidden", "AccessDenied"),
    HttpFault.ABSENT: ("404 Not Found", "NoSuchKey"),
    HttpFault.NO_UPLOAD: ("404 Not Found", "NoSuchUpload"),
    HttpFault.TIMED_OUT: ("400 Bad Request", "RequestTimeout"),
    HttpFault.LOST_412: ("412 Precondition Failed", "PreconditionFailed"),
    HttpFault.ERROR_IN_200: ("200 OK", "InternalError"),
}
_DONE = frozenset(
    {HttpFault.LOST_500, HttpFault.LOST_412, HttpFault.RESET_AFTER, HttpFault.TRUNCATED}
    | {HttpFault.SLOW, HttpFault.LATE}
)
_LOST = frozenset({HttpFault.RESET_BEFORE, HttpFault.RESET_AFTER, HttpFault.HELD_RESET})
_HELD = frozenset({HttpFault.HELD, HttpFault.HELD_RESET})


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes
    ----------
    kind : RequestKind
        What it asks.
    path : str
        The object, or the prefix that is listed, relative to the bucket; ``""``: the bucket itself.
    """

    kind: RequestKind
    path: str


@dataclass(frozen=True, slots=True)
class HttpRule:
    """One thing that goes wrong.

    Attributes
    ----------
    fault : HttpFault
        What happens.
    kind : RequestKind
        To which requests.
    path : str
        A part of their paths.
    first, times : int
        From which of the matching requests on, counted from 1, and to how many of them.
    """

    fault: HttpFault
    kind: RequestKind
    path: str = ""
    first: int = 1
    times: int = 1


class _FaultLayer:
    """A WSGI application around another one."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()
        self.seen: list[Request] = []
        self._plan: list[HttpRule] = []
        self._met: list[int] = []
        self._arrived: list[threading.Event] = []
        self._answered: list[threading.Event] = []
        self._held: list[tuple[dict[str, Any], bytes]] = []

    @property
    def held(self) -> int:
        return len(self._held)

    def deliver(self, most: int | None) -> list[str]:
        with self._lock:
            going, self._held = self._held[:most], self._held[len(self._held[:most]) :]
        return [self._pass_on({**environ, "wsgi.input": io.BytesIO(body)})[0] for environ, body in going]

    def follow(self, plan: Sequence[HttpRule], *, forget: bool = True) -> None:
        with self._lock:
            self._plan, self._met = list(plan), [0] * len(plan)
            self.seen = [] if forget else self.seen
        self._let_go(self._arrived)
        self._let_go(self._answered)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if "chunked" not in environ.get("HTTP_TRANSFER_ENCODING", ""):
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
        request = _request(environ)
        fault = self._fault_of(request)
        if fault in _HELD:
            with self._lock:
                self._held.append((dict(environ), environ["wsgi.input"].read()))
        self._let_go(self._arrived)
        if fault is HttpFault.LATE:
            self._hold(self._answered)
        status, headers, body = self._answer(environ, fault)
        if fault is HttpFault.SLOW:
            self._hold(self._arrived)
        if fault is not HttpFault.LATE:
            self._let_go(self._answered)
        if fault in _LOST:
            _lose_connection(environ["werkzeug.socket"])
        start_response(status, headers)
        return [body[: len(body) // 2] if fault is HttpFault.TRUNCATED else body]

    def _fault_of(self, request: Request) -> HttpFault | None:
        with self._lock:
            self.seen.append(request)
            for number, rule in enumerate(self._plan):
                if rule.kind is request.kind and rule.path in request.path:
                    self._met[number] += 1
                    if rule.first <= self._met[number] < rule.first + rule.times:
                        return rule.fault
        return None

    def _answer(self, environ: dict[str, Any], fault: HttpFault | None) -> _Answer:
        if fault is HttpFault.PARTIAL:
            return self._delete_partly(environ)
        if fault is None or fault in _DONE:
            answer = self._pass_on(environ)
            if fault not in _ANSWERS:
                return answer
        if fault in _ANSWERS:
            return _error(*_ANSWERS[fault], fault.value)
        return _xml("200 OK", b"")

    def _delete_partly(self, environ: dict[str, Any]) -> _Answer:
        asked: bytes = environ["wsgi.input"].read()
        left = _OBJECT.search(asked)
        assert left is not None, "a bulk delete names an object"
        rest = asked.replace(left[0], b"", 1)
        deleted = b""
        if _OBJECT.search(rest) is not None:
            environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(rest), str(len(rest))
            deleted = b"".join(re.findall(rb"<Deleted>.*?</Deleted>", self._pass_on(environ)[2], re.DOTALL))
        failed = b"<Error><Key>%s</Key><Code>InternalError</Code><Message>not done</Message></Error>" % left[1]
        return _xml("200 OK", _DELETED % (deleted + failed))

    def _pass_on(self, environ: dict[str, Any]) -> _Answer:
        given: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
            given[:] = [status, headers]

        try:
            body = b"".join(self._application(environ, start_response))
        except KeyError:
            # moto looks for an upload that was aborted meanwhile without minding that it may be gone.
            return _error("404 Not Found", "NoSuchUpload", "the upload is gone")
        return given[0], given[1], body

    def _hold(self, held: list[threading.Event]) -> None:
        event = threading.Event()
        with self._lock:
            held.append(event)
        event.wait()

    def _let_go(self, held: list[threading.Event]) -> None:
        with self._lock:
            events = list(held)
            held.clear()
        for event in events:
            event.set()


class FaultyServer(LockedMotoServer):
    """moto's server with conditional writes that hold, whose answers go wrong by rules.

    Parameters
    ----------
    bucket : str
        At least three characters.
    """

    _layer: _FaultLayer

    @property
    def seen(self) -> list[Request]:
        """Return the requests since :meth:`follow` or :meth:`heal`, those that failed with them."""
        return list(self._layer.seen)

    def follow(self, *plan: HttpRule) -> None:
        """Let answers go wrong by `plan` from now on, of which the first rule that fits counts, and forget before."""
        self._layer.follow(plan)

    def heal(self) -> None:
        """Let everything go well again, and what is held back be answered."""
        self._layer.follow(())

    @property
    def held(self) -> int:
        """Return how many requests were failed, and wait for :meth:`deliver`."""
        return self._layer.held

    def deliver(self, most: int | None = None) -> list[str]:
        """Do what was held, the oldest first, as if the network had only now let it through.

        Parameters
        ----------
        most : int, optional
            So many of them; default: all.

        Returns
        -------
        list of str
            What the server said, to nobody.
        """
        return self._layer.deliver(most)

    def stop_failing(self) -> None:
        """Let everything go well again, and go on noting requests."""
        self._layer.follow((), forget=False)

    def __enter__(self) -> FaultyServer:
        super().__enter__()
        assert self._server is not None, "the server has started"
        self._layer = _FaultLayer(self._server.app)
        self._server.app = self._layer
        return self

    def __exit__(self, *failure: object) -> None:
        self.heal()
        super().__exit__(*failure)


def _request(environ: dict[str, Any]) -> Request:
    _, _, path = str(environ["PATH_INFO"]).lstrip("/").partition("/")
    query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
    return Request(_kind(environ, path, query), path or query.get("prefix", ""))


def _kind(environ: dict[str, Any], path: str, query: dict[str, str]) -> RequestKind:
    method = environ["REQUEST_METHOD"]
    if not path:
        listing = RequestKind.LIST_UPLOADS if "uploads" in query else RequestKind.LIST
        return {"GET": listing, "POST": RequestKind.BULK_DELETE}.get(method, RequestKind.OTHER)
    if "uploadId" in query or "uploads" in query:
        return {
            "GET": RequestKind.LIST_PARTS,
            "PUT": RequestKind.UPLOAD_PART,
            "DELETE": RequestKind.ABORT_MULTIPART,
            "POST": RequestKind.CREATE_MULTIPART if "uploads" in query else RequestKind.COMPLETE_MULTIPART,
        }.get(method, RequestKind.OTHER)
    return {
        "GET": RequestKind.RANGED_GET if "HTTP_RANGE" in environ else RequestKind.GET,
        "HEAD": RequestKind.HEAD,
        "PUT": RequestKind.CONDITIONAL_PUT if "HTTP_IF_NONE_MATCH" in environ else RequestKind.PUT,
        "DELETE": RequestKind.DELETE,
    }.get(method, RequestKind.OTHER)


def _error(status: str, code: str, message: str) -> _Answer:
    return _xml(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode())


def _xml(status: str, body: bytes) -> _Answer:
    return status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))], body


def _lose_connection(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError
