"""Look at the page of a report in a real browser: ``make page``.

Each page at the width of a phone and of a desk, light, dark and printed: nothing is loaded, nothing is refused by its
own policy, nothing that was stored runs, the page never scrolls sideways, and axe finds nothing to complain of.  And
the live page refreshes itself, keeps what a person has opened, and can be paused.  Pictures are written to look at.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.page import stage
from tests.page.browser import Page, chromium
from txntable.report.live_server import LiveServer
from txntable.report.page import content_policy, render_page
from txntable.report.warehouse_report import WarehouseReport

PHONE, DESK, PAPER = 390, 1280, 794
PICTURE = 1100
REFRESH_S = 1
LOOKS: dict[str, dict[str, Any]] = {
    "phone-light": {"width": PHONE},
    "phone-dark": {"width": PHONE, "dark": True},
    "desk-light": {"width": DESK},
    "desk-dark": {"width": DESK, "dark": True},
    "desk-reduced": {"width": DESK, "reduced": True},
    "print": {"width": PAPER, "printed": True},
}
_SHORTEN = """for (const topic of document.querySelectorAll('.topic')) {
  if (!/^(orders|payments)/.test(topic.querySelector('h3').textContent)) topic.remove();
}
for (const id of ['groups', 'records', 'storage', 'health', 'as-table']) document.getElementById(id).remove();
document.querySelector('footer').remove(); document.querySelector('#transactions > .facts').remove();"""
_RUN_AXE = "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(one => one.id + ': ' + \
one.nodes.map(node => node.target.join(' ') + ' ' + node.failureSummary).slice(0, 5).join(' | ')))"


def main() -> int:
    """Look at everything; return how many things are wrong, at most 1 as an exit code."""
    parser = argparse.ArgumentParser(prog="tests.page", description=__doc__)
    parser.add_argument("--axe", type=Path, required=True, help="axe.min.js of npm's axe-core")
    parser.add_argument("--into", type=Path, help="a folder for the pictures")
    parser.add_argument("--picture", type=Path, help="where the picture of the documentation is written, too")
    arguments = parser.parse_args()
    axe = arguments.axe.read_text(encoding="utf-8")
    reports = {"busy": stage.busy(), "empty": stage.empty(), "hostile": stage.hostile()}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="txntable-page-") as made:
        into = arguments.into or Path(made)
        into.mkdir(parents=True, exist_ok=True)
        for name, report in reports.items():
            file = Path(made) / f"{name}.html"
            file.write_text(render_page(report), encoding="utf-8")
            wrong += [f"{name}: {each}" for each in _look_at(file, axe, into)]
        wrong += [f"live: {each}" for each in _live(reports["busy"], reports["empty"], axe)]
        if arguments.picture is not None:
            arguments.picture.write_bytes(_picture(Path(made) / "busy.html"))
    for each in wrong:
        sys.stdout.write(f"{each}\n")
    sys.stdout.write(f"{len(reports)} pages in {len(LOOKS)} looks, and one live: {len(wrong)} things are wrong\n")
    return min(1, len(wrong))


def _look_at(file: Path, axe: str, into: Path) -> Iterator[str]:
    with chromium() as page:
        page.look(DESK)
        page.open(file.as_uri())
        yield from _of_load(page, [file.as_uri()])
        page.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.ask(axe)
        for look, how in LOOKS.items():
            page.look(**how)
            if page.ask("document.documentElement.scrollWidth > innerWidth"):
                yield f"{look}: the page scrolls sideways"
            yield from (f"{look}: {each}" for each in page.ask(_RUN_AXE))
            (into / f"{file.stem}-{look}.png").write_bytes(page.picture())
        (into / f"{file.stem}.pdf").write_bytes(page.pdf())


def _of_load(page: Page, expected: list[str]) -> Iterator[str]:
    if page.said:
        yield f"the browser complains: {page.said}"
    if page.requests != expected:
        yield f"it asks for more than itself: {page.requests}"
    if page.ask("typeof window.injected") != "undefined":
        yield "something that was stored has run"
    if page.ask("document.scripts.length + document.querySelectorAll('img, iframe, object, embed, base, link').length"):
        yield "it has an element that it should not have"


def _picture(file: Path) -> bytes:
    """Return the upper half of the page, with two of its topics."""
    with chromium() as page:
        page.look(PICTURE)
        page.open(file.as_uri())
        page.ask(_SHORTEN)
        return page.picture()


@contextmanager
def _served(answers: list[WarehouseReport]) -> Iterator[str]:
    """Serve the reports one after the other, the last one for ever."""

    def answer() -> tuple[int, bytes]:
        report = answers.pop(0) if len(answers) > 1 else answers[0]
        return 200, render_page(report, REFRESH_S).encode()

    with LiveServer(answer, 0, "secret", content_policy(live=True)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def _live(first: WarehouseReport, then: WarehouseReport, axe: str) -> Iterator[str]:
    with chromium() as page, _served([first, first, then]) as url:
        page.look(DESK)
        page.open(url)
        page.ask("document.getElementById('as-table').open = true; document.querySelector('summary').focus()")
        page.ask(_later(1.5))
        if not page.ask("document.getElementById('as-table').open"):
            yield "what was opened is closed by a refresh"
        if page.ask("document.activeElement.tagName") != "SUMMARY":
            yield "the focus is lost by a refresh"
        page.ask(_later(1.5))
        if "All is well" not in page.ask("document.title + document.getElementById('held-back').textContent"):
            yield "it does not refresh itself"
        page.ask(axe)
        yield from page.ask(_RUN_AXE)
        page.ask("document.getElementById('live-pause').click()")
        asked = len(page.requests)
        page.ask(_later(2.5))
        if len(page.requests) > asked:
            yield "it refreshes itself though it is paused"
        if page.said:
            yield f"the browser complains: {page.said}"


def _later(seconds: float) -> str:
    return f"new Promise(resolve => setTimeout(resolve, {int(seconds * 1000)}))"


if __name__ == "__main__":
    sys.exit(main())
