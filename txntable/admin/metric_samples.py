"""What a look at a warehouse measures, as samples, and how monitoring systems take them.

Owns the names and the two texts: Prometheus's exposition format, and CloudWatch's embedded metric format, a line of
JSON that CloudWatch Logs turns into metrics.  Pure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import groupby

from txntable.admin.blocking_transactions import BlockingTransaction
from txntable.admin.lag_listing import WarehouseLags
from txntable.admin.upkeep import Duty, Finding
from txntable.upkeep.coordinator_round import CoordinatorReport
from txntable.verification.damage import DamageKind, Verification

NAMESPACE = "txntable"
WAREHOUSE = "warehouse"
# CloudWatch takes so many values in one line.
_LARGEST_EMF_METRICS = 100


class MetricFormat(StrEnum):
    """A text that a monitoring system reads."""

    PROMETHEUS = "prometheus"
    CLOUDWATCH = "cloudwatch"


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured value.

    Attributes
    ----------
    name : str
        Without the namespace: lower case, with underscores.
    value : int
        Measured.
    labels : Mapping[str, str]
        What it is of; empty: of the warehouse.
    help : str
        For people.
    is_total : bool
        Whether it only rises: a counter.
    """

    name: str
    value: int
    labels: Mapping[str, str] = field(default_factory=dict)
    help: str = ""
    is_total: bool = False


def samples_of_lags(lags: WarehouseLags) -> list[Sample]:
    """Return how far everything is behind, in detail, and the worst of each kind."""
    found = []
    for each in lags.partitions:
        place = {"topic": each.topic_partition.topic, "partition": str(each.topic_partition.partition)}
        found.append(Sample("high_watermark", each.high_watermark, place, "Offset after the last record."))
        text = "Offsets that open transactions hold back."
        found.append(Sample("last_stable_offset_lag", each.last_stable_offset_lag, place, text))
    for name, lag_ms in lags.publication_ms:
        text = "For how long the public table has lacked what it should show."
        found.append(Sample("publication_lag_ms", lag_ms, {"topic": name}, text))
    for one in lags.groups:
        place = {"topic": one.topic_partition.topic, "partition": str(one.topic_partition.partition)}
        text = "Offsets between what a group has committed and the last stable offset."
        found.append(Sample("group_lag", one.lag, {"group": one.group_id, **place}, text))
    worst = {
        "last_stable_offset_lag_max": max((each.last_stable_offset_lag for each in lags.partitions), default=0),
        "publication_lag_ms_max": max((lag for _, lag in lags.publication_ms), default=0),
        "group_lag_max": max((one.lag for one in lags.groups), default=0),
    }
    return [*found, *(Sample(name, value, help="The largest of all.") for name, value in worst.items())]


def samples_of_findings(findings: Sequence[Finding]) -> list[Sample]:
    """Return how much is late, by duty, and in all; each duty is there, also one that nothing is found of."""
    counts = Counter(one.duty for one in findings)
    text = "Findings of `txntable check` of this kind."
    by_duty = [Sample("findings", counts[duty], {"finding": duty.value}, text) for duty in Duty]
    unreadable = counts[Duty.READ]
    return [
        *by_duty,
        Sample("late", len(findings) - unreadable, help="Findings of `txntable check`, without what is unreadable."),
        Sample("unreadable", unreadable, help="What `txntable check` could not read."),
    ]


def samples_of_open(transactions: Sequence[BlockingTransaction]) -> list[Sample]:
    """Return what is open, and for how long."""
    oldest = max((one.duration_ms for one in transactions), default=0)
    return [
        Sample("open_transactions", len(transactions), help="Transactions that hold readers back."),
        Sample("oldest_open_transaction_ms", oldest, help="Since when the oldest of them has been open."),
    ]


def samples_of_round(report: CoordinatorReport) -> list[Sample]:
    """Return what a round of the coordinator job did."""
    text = "Of the newest round of the coordinator job."
    return [Sample(f"coordinator_{name}", value, help=text) for name, value in asdict(report).items()]


def samples_of_verification(found: Verification) -> list[Sample]:
    """Return what is damaged, by kind and in all, and how much was read; each kind is there, also without any."""
    counts = Counter(one.kind for one in found.damages)
    text = "What `txntable warehouse verify` found damaged"
    by_kind = [Sample("damage", counts[kind], {"kind": kind.value}, f"{text}, of this kind.") for kind in DamageKind]
    read = {"logs": found.logs, "entries": found.entries, "checkpoints": found.checkpoints}
    read |= {"segments": found.segments, "bytes": found.bytes}
    return [
        *by_kind,
        Sample("damages", len(found.damages), help=f"{text}, in all."),
        *(Sample(f"verified_{name}", value, help="Read by the verification.") for name, value in read.items()),
    ]


def samples_of_totals(totals: Mapping[str, Mapping[str, float]]) -> list[Sample]:
    """Return what a handle has counted, its groups in front of the names."""
    return [
        Sample(f"{group}_{name}".replace("-", "_"), int(value), is_total=True, help="Since the process began.")
        for group, names in totals.items()
        for name, value in names.items()
    ]


def exported(samples: Sequence[Sample], form: MetricFormat, warehouse: str, now_ms: int) -> str:
    """Return samples as the text of a monitoring system.

    Parameters
    ----------
    samples : sequence of Sample
        Measured at the same time.
    form : MetricFormat
        Which text.
    warehouse : str
        Its URL: a label, or the dimension.
    now_ms : int
        When, ms since 1970.
    """
    if form is MetricFormat.PROMETHEUS:
        return prometheus_text(samples, warehouse)
    return "".join(f"{line}\n" for line in embedded_metrics(samples, warehouse, now_ms))


def prometheus_text(samples: Iterable[Sample], warehouse: str) -> str:
    """Return samples in Prometheus's exposition format, for a textfile collector or a push gateway."""
    lines = []
    ordered = sorted(samples, key=lambda one: one.name)
    for name, of_name in groupby(ordered, key=lambda one: one.name):
        each = list(of_name)
        full = f"{NAMESPACE}_{name}"
        lines.append(f"# HELP {full} {each[0].help}")
        lines.append(f"# TYPE {full} {'counter' if each[0].is_total else 'gauge'}")
        for one in each:
            labels = {WAREHOUSE: warehouse, **one.labels}
            inside = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
            lines.append(f"{full}{{{inside}}} {one.value}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def embedded_metrics(samples: Sequence[Sample], warehouse: str, now_ms: int) -> list[str]:
    """Return samples as lines of CloudWatch's embedded metric format.

    Those of the warehouse become metrics, whose one dimension is the warehouse: each combination of dimensions is paid
    for.  Those of single partitions and groups are left out, but for what is largest.
    """
    whole = [one for one in samples if not one.labels]
    lines = []
    for first in range(0, len(whole), _LARGEST_EMF_METRICS):
        part = whole[first : first + _LARGEST_EMF_METRICS]
        directive = {
            "Namespace": NAMESPACE,
            "Dimensions": [[WAREHOUSE]],
            "Metrics": [{"Name": one.name, "Unit": _unit(one.name)} for one in part],
        }
        document = {
            "_aws": {"Timestamp": now_ms, "CloudWatchMetrics": [directive]},
            WAREHOUSE: warehouse,
            **{one.name: one.value for one in part},
        }
        lines.append(json.dumps(document, separators=(",", ":")))
    return lines


def _unit(name: str) -> str:
    if "_ms" in name:
        return "Milliseconds"
    if "_ns_" in name:
        return "None"
    return "Bytes" if "byte" in name else "Count"
