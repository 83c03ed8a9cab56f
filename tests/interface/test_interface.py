"""What users build on is what tests/golden/interface.txt says: nothing of it goes or comes unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interface import answers, surface
from tests.interface.__main__ import GOLDEN

ANSWERED = ("answer of ", "prometheus ")
REMEDY = "tell users in CHANGELOG.md, and run python -m tests.interface"


def promised(*, answered: bool) -> set[str]:
    return {line for line in GOLDEN.read_text().splitlines() if line.startswith(ANSWERED) is answered}


def compare(found: list[str], expected: set[str]) -> None:
    gone, new = sorted(expected - set(found)), sorted(set(found) - expected)
    assert (gone, new) == ([], []), REMEDY


def test_names_commands_settings_and_metrics_are_those_that_were_promised() -> None:
    compare(surface.lines(), promised(answered=False))


def test_answers_have_the_members_that_were_promised_when_printed_as_json(tmp_path: Path) -> None:
    compare(answers.lines(tmp_path), promised(answered=True))


@pytest.mark.parametrize(
    "line",
    [
        "python txntable.Warehouse",
        "command txntable status --output|-o VALUE",
        "error ProducerFencedError PRODUCER_FENCED is FatalError fatal",
        "setting of consumer: max_poll_records = 500",
        "answer of status: .transactions[].command string",
    ],
)
def test_promise_speaks_of_every_kind_of_thing(line: str) -> None:
    assert line in promised(answered=line.startswith(ANSWERED))
