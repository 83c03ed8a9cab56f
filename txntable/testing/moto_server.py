"""A real S3 API over HTTP on this machine, with conditional writes that hold.

moto's server checks the condition of a PUT and then writes, without a lock: under threads 1 to
2.5 % of races have two winners.  This one serves one request at a time.  The request's body is
read before the lock is taken: a client that sends slowly must not stop the others.
moto's state is the process's: servers share their buckets.  The last one that made a bucket takes it away as it stops,
and the last of all whatever else there is.
"""

from __future__ import annotations

import io
import re
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar
from urllib.parse import parse_qs

from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3 import models as moto_s3
from werkzeug.serving import make_server

_UPLOAD = re.compile(rb"<Upload>.*?</Upload>", re.DOTALL)
_UPLOAD_ID = re.compile(rb"<UploadId>(.*?)</UploadId>")
_INITIATED = re.compile(rb"<Initiated>.*?</Initiated>")
_REGION = "us-east-1"
_ACCESS_KEY = "testing"
_SECRET_KEY = "testing-secret"


class _QuietHandler(MotoRequestHandler):
    def log(self, *_: Any, **__: Any) -> None:
        pass


class _UploadTimes:
    """When uploads in parts were begun: moto says of all of them, in November 2010, so that a vacuum would end them."""

    def __init__(self) -> None:
        self._begun: dict[bytes, bytes] = {}

    def corrected(self, environ: dict[str, Any], body: bytes) -> bytes:
        if "uploads" not in parse_qs(environ["QUERY_STRING"], keep_blank_values=True):
            return body
        if environ["REQUEST_METHOD"] == "POST":
            now = moto_s3.utcnow()  # type: ignore[attr-defined]
            begun = now.strftime("%Y-%m-%dT%H:%M:%S.000Z").encode()
            self._begun.update(dict.fromkeys(_UPLOAD_ID.findall(body), begun))
            return body
        return _UPLOAD.sub(self._with_time, body)

    def _with_time(self, upload: re.Match[bytes]) -> bytes:
        begun = self._begun.get(_UPLOAD_ID.findall(upload[0])[0])
        return upload[0] if begun is None else _INITIATED.sub(b"<Initiated>%s</Initiated>" % begun, upload[0])


class _LockedApplication:
    """A WSGI application that answers one request at a time."""

    def __init__(self, application: Any, requests: Counter[str]) -> None:
        self._application = application
        self._requests = requests
        self._lock = threading.Lock()
        self._uploads = _UploadTimes()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if "chunked" not in environ.get("HTTP_TRANSFER_ENCODING", ""):
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = io.BytesIO(body)
        with self._lock:
            self._requests[environ["REQUEST_METHOD"]] += 1
            answer = self._application(environ, start_response)
            try:
                return [self._uploads.corrected(environ, b"".join(answer))]
            finally:
                if hasattr(answer, "close"):
                    answer.close()


class _Dispatcher(DomainDispatcherApplication):
    """Knows the services of hosts that it has met: moto looks through all its folders, at each request, twice."""

    def __init__(self) -> None:
        super().__init__(create_backend_app)
        self._known: dict[str | None, Any] = {}

    def get_backend_for_host(self, host: str | None) -> Any:
        if host not in self._known:
            self._known[host] = super().get_backend_for_host(host)
        return self._known[host]


class LockedMotoServer(ThreadedMotoServer):
    """The server, as a context manager with one bucket in it.

    Parameters
    ----------
    bucket : str
        At least three characters.

    Attributes
    ----------
    requests : Counter of str
        Requests so far, by HTTP method.
    """

    _running: ClassVar[int] = 0
    _made_by_running: ClassVar[Counter[str]] = Counter()

    def __init__(self, bucket: str = "warehouse") -> None:
        super().__init__("127.0.0.1", 0, verbose=False)
        self.bucket = bucket
        self.requests = Counter[str]()
        self._made: set[str] = set()

    @property
    def endpoint(self) -> str:
        """Return the server's URL."""
        host, port = self.get_host_and_port()
        return f"http://{host}:{port}"

    @property
    def url(self) -> str:
        """Return the bucket's URL."""
        return f"s3://{self.bucket}"

    @property
    def storage_options(self) -> dict[str, str]:
        """Return what a client needs, under the names that obstore, deltalake and this project know."""
        return {
            "AWS_ACCESS_KEY_ID": _ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET_KEY,
            "AWS_REGION": _REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def make_bucket(self, name: str) -> None:
        """Make another bucket."""
        self.ask("PUT", name)
        if name not in self._made:
            self._made.add(name)
            LockedMotoServer._made_by_running[name] += 1

    def ask(self, method: str, resource: str) -> bytes:
        """Send an unsigned request past every client, for looking behind the clients; return its body.

        Parameters
        ----------
        method : str
            An HTTP method.
        resource : str
            What follows the server's URL, without the first slash.
        """
        request = urllib.request.Request(f"{self.endpoint}/{resource}", method=method, data=None)
        with urllib.request.urlopen(request) as answer:
            body: bytes = answer.read()
        return body

    def __enter__(self) -> LockedMotoServer:
        self.start()
        LockedMotoServer._running += 1
        self.make_bucket(self.bucket)
        self.requests.clear()
        return self

    def __exit__(self, *_: object) -> None:
        LockedMotoServer._running -= 1
        if not LockedMotoServer._running:
            self.ask("POST", "moto-api/reset")
        for name in self._made:
            LockedMotoServer._made_by_running[name] -= 1
            if not LockedMotoServer._made_by_running[name]:
                _take_away(name)
        self._made.clear()
        self.stop()

    def _server_entry(self) -> None:
        application = _LockedApplication(_Dispatcher(), self.requests)
        self._server = make_server(
            self._ip_address, self._port, application, threaded=True, request_handler=_QuietHandler
        )
        self._server_ready_event.set()
        self._server.serve_forever(poll_interval=0.05)


def _take_away(bucket: str) -> None:
    """Forget a bucket with all that is in it: S3 itself deletes only one that is empty."""
    moto_s3.s3_backends.bucket_accounts.pop(bucket, None)
    for account in moto_s3.s3_backends.values():
        for backend in account.values():
            backend.buckets.pop(bucket, None)
