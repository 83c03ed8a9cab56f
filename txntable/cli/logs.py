"""What commands log on standard error: the option, and the form of a line.

Owns that a line is one line, with its time, level and logger in front, and steers no terminal.  What is logged is
``key=value`` behind a few words; the loggers are the modules' own, below ``txntable``.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Annotated

import typer

from txntable.format.control_characters import escaped


class LogLevel(StrEnum):
    """From which level on events are shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogLevelOption = Annotated[
    LogLevel | None, typer.Option("--log-level", help="Log events from this level on, on standard error.")
]
_FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record).replace("\n", " | "))


def show_logs(level: LogLevel | None) -> None:
    """Log what this package says from a level on; ``None``: warnings only, as Python does by itself."""
    logger = logging.getLogger("txntable")
    for handler in [each for each in logger.handlers if isinstance(each.formatter, _OneLine)]:
        logger.removeHandler(handler)
    logger.propagate = level is None
    if level is not None:
        handler = logging.StreamHandler()
        handler.setFormatter(_OneLine(_FORM))
        logger.addHandler(handler)
        logger.setLevel(level.value.upper())
