"""The page of a report: one HTML document that needs nothing else.

Owns that every value is escaped (Jinja's autoescape, and :func:`txntable.report.page_text.plain` before it), and that
the browser is told to run and load nothing but what this module has put there: the policy in the page names the style
and the script by their digests, so that what slipped through would still not run.  Pure, but for reading its own
templates.  Must not know where the page goes.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from txntable.admin import blocking_words
from txntable.admin.blocking_transactions import BlockingTransaction
from txntable.report import page_text
from txntable.report.lane_drawing import draw_lanes, span_text
from txntable.report.warehouse_report import WarehouseReport

LONGEST_COMMAND = 2_000
"""Characters; a longer one is left to `txntable status`."""
_PACKAGE = "txntable.report"


def render_page(report: WarehouseReport, refresh_s: int | None = None) -> str:
    """Return the page.

    Parameters
    ----------
    report : WarehouseReport
        What it shows.
    refresh_s : int, optional
        After how many seconds it asks its server for a newer one; default: it has none.
    """
    drawing = draw_lanes(report.history, report.blocking.shown)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            now_ms=report.made_at_ms,
            drawing=drawing,
            most_bytes=max([1, *(layer.size for layer in report.layers)]),
            refresh_s=refresh_s,
            policy=content_policy(live=refresh_s is not None),
            style=Markup(_asset("page.css")),
            script=Markup(_asset("live.js")),
            ending=lambda one: ending_command(report.url, one),
            words=blocking_words,
            describe=span_text,
            amount=page_text.amount_text,
        )
    )


@cache
def content_policy(*, live: bool) -> str:
    """Return what a browser may do with the page: its own style; live, its own script and its own address, too."""
    script = f"script-src '{_digest('live.js')}'; connect-src 'self'; " if live else ""
    style = f"style-src '{_digest('page.css')}'"
    return f"default-src 'none'; {script}{style}; base-uri 'none'; form-action 'none'"


def ending_command(url: str, one: BlockingTransaction) -> str | None:
    """Return the command that ends a transaction, wherever it is typed; ``None``: none does, or it is very long."""
    words = blocking_words.ending_words(one)
    if words is None:
        return None
    command = shlex.join(["txntable", "--warehouse", url, "transactions", *words])
    return command if len(command) <= LONGEST_COMMAND else "txntable status"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        finalize=page_text.plain,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=page_text.count_text,
        size=page_text.size_text,
        instant=page_text.instant_text,
        machine=page_text.machine_text,
        ago=page_text.ago_text,
        name=page_text.name_text,
        duration=blocking_words.duration_text,
        clock=page_text.time_text,
        commands=page_text.commands_text,
        sentence=page_text.sentence_text,
    )
    return environment


@cache
def _asset(name: str) -> str:
    return (files(_PACKAGE) / "templates" / name).read_text(encoding="utf-8")


def _digest(name: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(_asset(name).encode()).digest()).decode()
