"""Real processes, killed and paused at any moment, on a folder and on S3: nothing that was promised is broken.

A run is as long as its seconds say, and then as long as it takes until everybody is awake, and after the last blow a
transaction is committed, a snapshot read and a record polled; where one of these never comes, the run fails.  How much
more was done by then is the machine's, and nothing here depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.__main__ import run
from tests.chaos.judgement import Judgement, repeated_batches
from tests.chaos.premises import SESSION_TIMEOUT_MS
from tests.chaos.scenarios import SCENARIOS
from tests.checker.check import check
from tests.checker.evidence import Evidence
from tests.checker.operations import Level, Look, Operation, Outcome, Read, Send

SECONDS, SEED = 20, 7


Doctor = Callable[[Sequence[Operation], Evidence], tuple[Sequence[Operation], Evidence]]


def without_a_committed_record(history: Sequence[Operation], evidence: Evidence) -> tuple[list[Operation], Evidence]:
    lost = committed_value(history)

    def blind(read: Read) -> Read:
        return replace(read, records=tuple(seen for seen in read.records if seen.value != lost))

    return with_final_reads(history, blind), evidence


def with_a_record_twice(history: Sequence[Operation], evidence: Evidence) -> tuple[list[Operation], Evidence]:
    value = committed_value(history)

    def seeing_double(read: Read) -> Read:
        seen = next(seen for seen in read.records if seen.value == value)
        return replace(read, records=(*read.records, replace(seen, offset=seen.offset + 1)))

    return with_final_reads(history, seeing_double), evidence


def with_a_marker_that_says_otherwise(
    history: Sequence[Operation], evidence: Evidence
) -> tuple[Sequence[Operation], Evidence]:
    first, *others = evidence.markers
    return history, replace(evidence, markers=(replace(first, committed=not first.committed), *others))


def without_a_file(history: Sequence[Operation], evidence: Evidence) -> tuple[Sequence[Operation], Evidence]:
    first, *others = evidence.references
    return history, replace(evidence, references=(replace(first, found_size=None), *others))


def with_a_log_of_two_contents(history: Sequence[Operation], evidence: Evidence) -> tuple[list[Operation], Evidence]:
    (look, *_) = ((one, one.call) for one in history if isinstance(one.call, Look))
    operation, call = look
    return [*history, replace(operation, process="another", call=replace(call, chain="of another log"))], evidence


def with_final_reads(history: Sequence[Operation], change: Callable[[Read], Read]) -> list[Operation]:
    return [
        replace(one, call=change(one.call)) if isinstance(one.call, Read) and one.call.final else one for one in history
    ]


def committed_value(history: Sequence[Operation]) -> str:
    """A value that was acknowledged without a transaction, so that it must be seen."""
    return next(
        one.call.writes[0].value
        for one in history
        if isinstance(one.call, Send) and one.call.txn is None and one.outcome is Outcome.OK
    )


DOCTORS: tuple[Doctor, ...] = (
    without_a_committed_record,
    with_a_record_twice,
    with_a_marker_that_says_otherwise,
    without_a_file,
    with_a_log_of_two_contents,
)


def with_a_batch_twice(judgement: Judgement) -> list[Operation]:
    (final,) = (
        one.call
        for one in judgement.history
        if isinstance(one.call, Read) and one.call.final and one.call.level is Level.SNAPSHOT
    )
    value = final.records[0].value
    (sent, *_) = (
        (one, one.call)
        for one in judgement.history
        if isinstance(one.call, Send) and any(write.value == value for write in one.call.writes)
    )
    operation, call = sent
    runs = [replace(operation, call=replace(call, txn=f"{name} 'monday'")) for name in ("a/1", "another/0")]
    return [*judgement.history, *runs]


@pytest.mark.parametrize("store", ["local", pytest.param("s3", marks=[pytest.mark.s3, pytest.mark.nightly])])
def test_history_has_no_anomaly_when_processes_are_killed_and_paused_and_every_one_is_found_when_it_is_doctored(
    store: str, tmp_path: Path
) -> None:
    judgement, figures = run(store, tmp_path, SECONDS, SEED)

    assert judgement.violations == []
    assert judgement.repeated_batches == {}
    assert figures["kills"] >= 3
    assert figures["longest_pause_s"] * 1000 > SESSION_TIMEOUT_MS
    assert figures["doubles"] >= 2
    # By others than the judge, and after the last blow.
    assert figures["committed"] >= 1
    assert figures["snapshots"] >= 1
    assert figures["polled"] >= 1
    for doctor in DOCTORS:
        findings = check(*doctor(judgement.history, judgement.evidence), SCENARIOS["everyday"].checked)
        assert any(finding.violation for finding in findings), doctor.__name__
    assert repeated_batches(with_a_batch_twice(judgement)) == {"'monday'": 2}
