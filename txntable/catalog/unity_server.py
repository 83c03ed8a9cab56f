"""A server of Unity Catalog, spoken to over its REST interface, with the standard library.

Owns the requests, that pages are followed, that what passes is tried again, and that a token goes over an encrypted
connection, or to this machine, only.  Must not know what a table means.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from txntable.errors import InvalidConfigError, InvalidRequestError, StorePermissionError, StoreUnavailableError
from txntable.runtime.environment import Environment
from txntable.storage.retries import DEFAULT_RETRY_TIMEOUT_MS, Attempts
from txntable.storage.written import Written

Document = dict[str, Any]

_API = "api/2.1/unity-catalog"
_SECONDS = 30
_PAGE = 50
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})
_REASON_CHARACTERS = 300


class UnityServer:
    """Tables of one schema.

    Parameters
    ----------
    url : str
        The server's, as ``https://host``.
    schema : tuple of str
        The catalog, and the schema in it.
    token : str, optional
        The bearer's; ``None``: the server asks for none.
    environment : Environment
        Waits between attempts.

    Raises
    ------
    InvalidConfigError
        The URL is none of a server, or would show the token to others.
    """

    def __init__(self, url: str, schema: tuple[str, str], token: str | None, environment: Environment) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidConfigError("give the server's url as https://host", endpoint=url)
        if token and parts.scheme == "http" and parts.hostname not in _HERE:
            raise InvalidConfigError("a token would be sent in the open; take https", endpoint=url)
        self._url, self._environment = f"{url.rstrip('/')}/{_API}", environment
        self.catalog, self.schema = schema
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def list(self) -> Iterator[Document]:
        """Yield every table of the schema.

        Raises
        ------
        InvalidRequestError
            There is no such schema.
        StorePermissionError, StoreUnavailableError
            The server refused, or did not answer.
        """
        asked: dict[str, object] = {"catalog_name": self.catalog, "schema_name": self.schema, "max_results": _PAGE}
        while True:
            page = self._asked("GET", f"tables?{urlencode(asked)}")
            if page is None:
                raise InvalidRequestError(
                    "the server has no such schema; create it, or correct its name",
                    catalog=self.catalog,
                    schema=self.schema,
                )
            yield from page.get("tables") or ()
            if not page.get("next_page_token"):
                return
            asked["page_token"] = page["next_page_token"]

    def get(self, name: str) -> Document | None:
        """Return a table; ``None``: there is none."""
        return self._asked("GET", self._table(name))

    def create(self, table: Mapping[str, Any]) -> Written:
        """Create a table, unless there is one of its name."""
        try:
            created = self._asked("POST", "tables", {"catalog_name": self.catalog, "schema_name": self.schema, **table})
        except _Exists:
            return Written.OVERTAKEN
        return Written.OVERTAKEN if created is None else Written.DONE

    def delete(self, name: str) -> Written:
        """Delete a table; one that is not there is deleted."""
        self._asked("DELETE", self._table(name))
        return Written.DONE

    def _table(self, name: str) -> str:
        return f"tables/{quote(f'{self.catalog}.{self.schema}.{name}', safe='')}"

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Document | None:
        """Return the server's answer; ``None``: it does not have what was asked for."""
        data = None if body is None else json.dumps(body).encode()
        attempts = Attempts(DEFAULT_RETRY_TIMEOUT_MS, self._environment)
        while True:
            request = urllib.request.Request(f"{self._url}/{path}", data, self._headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                    text = answer.read()
                return _document(text)
            except urllib.error.HTTPError as error:
                with error:
                    said = error.read().decode(errors="replace")
                if error.code == 404:
                    return None
                if error.code not in _PASSING:
                    raise _refusal(error.code, said, method) from error
                failure: Exception = error
            except OSError as error:
                failure = error
            if not attempts.wait():
                raise StoreUnavailableError(
                    "the catalog's server gave no usable answer; run this again",
                    reason=str(failure),
                    tried_for_ms=attempts.tried_for_ms,
                ) from failure


class _Exists(Exception):
    """There is a table of this name."""


def _document(text: bytes) -> Document:
    try:
        found = json.loads(text or b"{}")
    except ValueError as error:
        raise InvalidConfigError("the answer is no json: this is no server of unity catalog") from error
    return found if isinstance(found, dict) else {}


def _refusal(status: int, said: str, method: str) -> Exception:
    code = ""
    with suppress(ValueError, AttributeError):
        code = str(json.loads(said).get("error_code", ""))
    if status == 409 or code.endswith("ALREADY_EXISTS"):
        return _Exists()
    reason = " ".join(said.split())[:_REASON_CHARACTERS]
    if status in {401, 403}:
        return StorePermissionError(
            "the catalog's server refused the request; give a token that may do it", method=method, reason=reason
        )
    return InvalidRequestError("the catalog's server does not take the request", status=status, reason=reason)
