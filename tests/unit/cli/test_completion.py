"""Completion in a shell: commands, their verbs, options and choices."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from txntable.cli.main import application


def completed(words: str) -> list[str]:
    """What bash is offered for the last word."""
    asked = {
        "_TXNTABLE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    return CliRunner(env=asked).invoke(application, [], prog_name="txntable").stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("txntable to", ["topics"]),
        ("txntable wa", ["warehouse", "watch"]),
        ("txntable topics cr", ["create"]),
        ("txntable topics create --par", ["--partitions"]),
        ("txntable check --metrics ", ["prometheus", "cloudwatch"]),
        ("txntable warehouse verify --log-level w", ["warning"]),
        ("txntable transactions list --state ON", ["ONGOING"]),
    ],
)
def test_what_is_offered(words: str, offered: list[str]) -> None:
    assert completed(words) == offered
