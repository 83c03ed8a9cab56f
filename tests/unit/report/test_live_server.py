"""Who is answered by the live page, spoken to over a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse

import pytest

from txntable.report.live_server import LOOPBACK, LiveServer
from txntable.report.page import content_policy

BODY = b"<!doctype html><title>a page</title>"
SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def asked() -> list[int]:
    """One for each time that the page was asked for."""
    return []


@pytest.fixture
def server(asked: list[int]) -> Iterator[LiveServer]:
    def answer() -> tuple[int, bytes]:
        asked.append(1)
        return 200, BODY

    with LiveServer(answer, 0, SECRET, content_policy(live=True)) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(
    server: LiveServer, method: str = "GET", path: str | None = None, host: str | None = None
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(LOOPBACK, server.server_port, timeout=10)
    try:
        connection.putrequest(method, path or server.path, skip_host=True)
        for each in [f"{LOOPBACK}:{server.server_port}"] if host is None else host.split("\n"):
            connection.putheader("Host", each)
        connection.endheaders()
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost"])
def test_page_is_served_under_the_names_of_this_machine(server: LiveServer, name: str) -> None:
    response, body = ask(server, host=f"{name}:{server.server_port}")

    assert (response.status, body) == (200, BODY)


@pytest.mark.parametrize(
    "host",
    [
        "rebound.example",
        "rebound.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.rebound.example:{port}",
        "127.0.0.1:{port}.rebound.example",
        "127.0.0.1:{port}@rebound.example",
        "[::1]:{port}",
        "0.0.0.0:{port}",
        "127.0.0.2:{port}",
        "",
        "127.0.0.1:{port}\nrebound.example",
        "rebound.example\n127.0.0.1:{port}",
    ],
)
def test_another_host_is_told_nothing_of_the_warehouse(server: LiveServer, asked: list[int], host: str) -> None:
    """A website whose name leads to this machine (DNS rebinding) reads what the server tells it."""
    response, body = ask(server, host=host.format(port=server.server_port))

    assert response.status == 421
    assert BODY not in body
    assert asked == []


def test_request_without_a_host_is_told_nothing(server: LiveServer, asked: list[int]) -> None:
    with socket.create_connection((LOOPBACK, server.server_port), timeout=10) as raw:
        raw.sendall(f"GET {server.path} HTTP/1.0\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(4096), b""))

    assert answer.startswith(b"HTTP/1.1 421 ")
    assert asked == []


@pytest.mark.parametrize(
    "path", ["/", "/{secret}", "/{secret}/x", "/{secret}/?x=1", "/%7Bsecret%7D/", "/{wrong}/", "/é/"]
)
def test_path_without_the_secret_is_told_nothing(server: LiveServer, asked: list[int], path: str) -> None:
    wrong = SECRET[:-1] + "0"
    raw = path.replace("{secret}", SECRET).replace("{wrong}", wrong).encode("latin-1").decode("latin-1")
    with socket.create_connection((LOOPBACK, server.server_port), timeout=10) as sent:
        request = f"GET {raw} HTTP/1.1\r\nHost: {LOOPBACK}:{server.server_port}\r\nConnection: close\r\n\r\n"
        sent.sendall(request.encode("latin-1"))
        answer = b"".join(iter(lambda: sent.recv(4096), b""))

    assert answer.startswith(b"HTTP/1.1 404 ")
    assert asked == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "x"])
def test_nothing_but_reading_is_heard(server: LiveServer, asked: list[int], method: str) -> None:
    response, _ = ask(server, method)

    assert response.status == 501
    assert asked == []


def test_head_has_the_headers_and_no_body(server: LiveServer) -> None:
    response, body = ask(server, "HEAD")

    assert (response.status, body) == (200, b"")
    assert response.headers["Content-Length"] == str(len(BODY))


def test_answer_forbids_to_be_framed_stored_sniffed_or_read_by_others(server: LiveServer) -> None:
    headers = ask(server)[0].headers

    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"] == f"{content_policy(live=True)}; frame-ancestors 'none'"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
    assert headers["Server"].strip() == "txntable"


def test_server_listens_on_the_loopback_interface_alone(server: LiveServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/{SECRET}/"


def test_failure_is_plain_text_whatever_it_says() -> None:
    with LiveServer(lambda: (503, b"<script>x</script>"), 0, SECRET, "default-src 'none'") as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        response, body = ask(made)
        made.shutdown()
        thread.join()

    assert (response.status, body) == (503, b"<script>x</script>")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
