"""Help in 80 columns: nothing of it is cut, whoever brings the command."""

from __future__ import annotations

import re

import pytest
import typer
from typer.testing import CliRunner

from tools.documentation.command_reference import commands
from txntable.cli.main import application
from txntable.cli.plain_help import PlainGroup, plain

NARROW = CliRunner(env={"COLUMNS": "80", "TXNTABLE_WAREHOUSE": None})
NOUNS = sorted({words[1] for path, _ in commands() if len(words := path.split()) > 2})


def told(*words: str) -> str:
    result = NARROW.invoke(application, [*words, "--help"])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("path", [path for path, _ in commands()])
def test_help_names_every_option_whole_in_80_columns(path: str) -> None:
    command = dict(commands())[path]

    lines = told(*path.split()[1:])

    names = [name for each in command.params if not each.hidden for name in (*each.opts, *each.secondary_opts)]
    assert [name for name in names if name.startswith("-") and name not in lines] == []
    assert max(map(len, lines.splitlines())) <= 80


@pytest.mark.parametrize("path", [path for path, _ in commands()])
def test_help_says_what_a_value_is_in_the_fields_words(path: str) -> None:
    lines = told(*path.split()[1:])

    # What can be chosen from stays: <table|json>.
    assert re.findall(r"<[^<>|]*>", lines) == []


@pytest.mark.parametrize("noun", [[], *([noun] for noun in NOUNS)], ids=" ".join)
def test_help_of_a_noun_says_of_each_command_its_whole_first_sentence(noun: list[str]) -> None:
    assert "..." not in told(*noun).partition("Commands:")[2]


def test_group_class_of_another_packages_application_is_left_to_it() -> None:
    class Own(PlainGroup):
        pass

    assert plain(typer.Typer(cls=Own)).info.cls is Own
    assert plain(typer.Typer()).info.cls is PlainGroup
