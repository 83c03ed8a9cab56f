"""Metrics in place of an answer: the option, and what is measured for it.

Owns what is measured beside what a command found itself.  The texts are :mod:`txntable.admin.metric_samples`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from txntable.admin.metric_samples import (
    MetricFormat,
    Sample,
    exported,
    samples_of_lags,
    samples_of_open,
    samples_of_totals,
)
from txntable.cli.output import write_out
from txntable.cli.unreadable import readable_part
from txntable.runtime.environment import SystemEnvironment
from txntable.warehouse.warehouse import Warehouse

Metrics = Annotated[
    MetricFormat | None,
    typer.Option(
        "--metrics",
        help="Print metrics in place of the answer: Prometheus's text (for a file of its textfile collector), or lines"
        " of CloudWatch's embedded metric format (for CloudWatch Logs).",
    ),
]


def write_metrics(warehouse: Warehouse, found: Sequence[Sample], form: MetricFormat) -> None:
    """Print what a command found, how far everything is behind, what is open, and what this process has counted.

    What cannot be read is among what a command found: here it hides no other.
    """
    part = readable_part(warehouse)
    samples = [
        *found,
        *samples_of_lags(part.lags()),
        *samples_of_open(part.blocking()),
        *samples_of_totals(warehouse.metrics()),
    ]
    write_samples(warehouse.url, samples, form)


def write_samples(url: str, samples: Sequence[Sample], form: MetricFormat) -> None:
    """Print samples of a warehouse, which may be one that cannot be opened."""
    write_out(exported(samples, form, url, SystemEnvironment().instant().wall_ms))
