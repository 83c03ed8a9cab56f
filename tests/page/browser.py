"""A headless Chromium, spoken to through a pair of pipes (its DevTools protocol, one JSON text after another).

Owns the process and the few commands that looking at a page takes.  Must not know the page.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-extensions",
    "--force-color-profile=srgb",
)


class BrowserError(Exception):
    """There is no Chromium, or it refused a command."""


class Page:
    """One tab."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing, self._number, self._buffer = reading, writing, 0, b""
        self._session: str | None = None
        self.requests: list[str] = []
        """What it has asked for over the network or from a disk."""
        self.said: list[str] = []
        """Errors and warnings on its console: a refused script or style is one."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **parameters: Any) -> Any:
        """Run a command; return its answer."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            asked["sessionId"] = self._session
        os.write(self._writing, json.dumps(asked).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            found = os.read(self._reading, 1 << 20)
            if not found:
                raise BrowserError("the browser has ended")
            self._buffer += found
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif method == "Log.entryAdded":
            self.said.append(found["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning"):
            self.said.append(" ".join(str(each.get("value")) for each in found["args"]))
        elif method == "Runtime.exceptionThrown":
            self.said.append(found["exceptionDetails"]["text"])

    def open(self, url: str) -> None:
        """Load a page."""
        self.command("Page.navigate", url=url)
        while self._next_event() != "Page.loadEventFired":
            pass

    def _next_event(self) -> str | None:
        event = self._next()
        self._note(event)
        return event.get("method")

    def look(self, width: int, *, dark: bool = False, printed: bool = False, reduced: bool = False) -> None:
        """Be as wide, in these colours, on this medium."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced else "no-preference"},
        ]
        self.command("Emulation.setEmulatedMedia", media="print" if printed else "screen", features=features)

    def ask(self, expression: str) -> Any:
        """Return what a JavaScript expression gives; a promise is awaited."""
        found = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(json.dumps(found["exceptionDetails"])[:2000])
        return found["result"].get("value")

    def picture(self, *, whole: bool = True) -> bytes:
        """Return what is seen as a PNG."""
        found = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._area(whole))
        return base64.b64decode(found["data"])

    def _area(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.command("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        return base64.b64decode(self.command("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])


def find_chromium() -> str:
    """Return the program: what CHROMIUM names, or one on the PATH."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise BrowserError("there is no Chromium here; install it (Debian: apt install chromium), or set CHROMIUM")
    return found


@contextmanager
def chromium(more: Sequence[str] = ()) -> Iterator[Page]:
    """Start the browser with an empty profile; end it after the block."""
    to_read, to_be_written = os.pipe()
    to_be_read, to_write = os.pipe()
    # Its children may still write into the profile while it is removed.
    with tempfile.TemporaryDirectory(prefix="txntable-chromium-", ignore_cleanup_errors=True) as profile:
        script = f'exec "$0" "$@" 3<&{to_be_read} 4>&{to_be_written}'
        command = ["bash", "-c", script, find_chromium(), *_FLAGS, f"--user-data-dir={profile}", *more, "about:blank"]
        process = subprocess.Popen(
            command, pass_fds=(to_be_read, to_be_written), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_be_read)
        os.close(to_be_written)
        try:
            yield Page(to_read, to_write)
        finally:
            os.close(to_write)
            process.terminate()
            process.wait()
            os.close(to_read)
