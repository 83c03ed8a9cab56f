"""Look at every page of the built site in a real browser: ``python -m tests.page.site build/site``.

A page loads nothing from another host, so it reads without a network, and its browser complains of nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.page.browser import Page, chromium

DESK = 1280
_QUIET = "new Promise(resolve => setTimeout(resolve, 200))"
"""What is drawn by a script is asked for after the page has loaded."""


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing of a request."""


def main() -> int:
    """Look at all pages; return 1 if one of them asks another host for something."""
    folder = Path(sys.argv[1])
    pages = sorted(str(page.relative_to(folder)) for page in folder.rglob("*.html"))
    with _served(folder) as url, chromium() as browser:
        browser.look(DESK)
        wrong = [f"{page}: {each}" for page in pages for each in _of_page(browser, url, page)]
    for each in wrong:
        sys.stdout.write(f"{each}\n")
    sys.stdout.write(f"{len(pages)} pages of the site: {len(wrong)} things are wrong\n")
    return min(1, len(wrong) + (not pages))


def _of_page(browser: Page, url: str, page: str) -> Iterator[str]:
    browser.requests.clear()
    browser.said.clear()
    browser.open(f"{url}/{page}")
    browser.ask(_QUIET)
    yield from (f"it asks another host: {each}" for each in browser.requests if not each.startswith((url, "data:")))
    yield from (f"the browser complains: {each}" for each in browser.said)


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    sys.exit(main())
