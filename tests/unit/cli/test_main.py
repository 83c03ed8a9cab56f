"""The root of the command line: warehouses, exit codes, commands of other packages."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints, version
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Call
from txntable.cli import extension
from txntable.format.warehouse_settings import WarehouseSettings
from txntable.warehouse.warehouse import Warehouse


def test_version_is_the_packages(call: Call) -> None:
    assert call("--version").stdout == f"txntable {version('txntable')}\n"


def test_create_makes_a_warehouse_that_describe_finds(call_anywhere: Call, tmp_path: Path) -> None:
    url = str(tmp_path / "new")

    created = call_anywhere("warehouse", "create", "--warehouse", url, "--output", "json")
    described = call_anywhere("warehouse", "describe", "--warehouse", url, "--output", "json")

    assert (created.exit_code, described.exit_code) == (0, 0)
    assert json.loads(described.stdout) == json.loads(created.stdout)
    assert json.loads(described.stdout)["warehouse"] == url


def test_create_gives_a_warehouse_the_settings_that_are_said(call_anywhere: Call, tmp_path: Path) -> None:
    said = ("--config", "snapshot_retention_ms=60000", "--config", "vacuum_retention_ms=86400000")

    result = call_anywhere("warehouse", "create", "--warehouse", str(tmp_path / "new"), *said, "--output", "json")

    created = json.loads(result.stdout)
    assert (created["snapshot_retention_ms"], created["vacuum_retention_ms"]) == (60_000, 86_400_000)
    assert created["batch_retention_ms"] == WarehouseSettings().batch_retention_ms


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("snapshot.retention.ms=60000", "did you mean snapshot_retention_ms?"),
        ("snapshot_retention_ms=1h", "name=snapshot_retention_ms value=1h"),
        ("snapshot_retention_ms=" + "9" * 5_000, "name=snapshot_retention_ms value=999"),
        ("snapshot_retention_ms=59999", "snapshot_retention_ms=59999 vacuum_retention_ms=2592000000"),
    ],
    ids=["unknown name", "no number", "no number of this world", "out of bounds"],
)
def test_create_makes_nothing_when_a_setting_is_refused(
    call_anywhere: Call, tmp_path: Path, said: str, told: str
) -> None:
    result = call_anywhere("warehouse", "create", "--warehouse", str(tmp_path / "new"), "--config", said)

    assert result.exit_code == 1
    assert result.stderr.startswith("error: INVALID_CONFIG")
    assert told in result.stderr
    assert not (tmp_path / "new").exists()


def test_create_fails_when_there_is_a_warehouse_unless_that_is_fine(call: Call) -> None:
    refused = call("warehouse", "create")
    accepted = call("warehouse", "create", "--exist-ok")

    assert (refused.exit_code, accepted.exit_code) == (1, 0)
    assert refused.stderr.startswith("error: WAREHOUSE_ALREADY_EXISTS")
    assert "--exist-ok" in refused.stderr


def test_command_fails_in_one_line_when_there_is_no_warehouse(call_anywhere: Call, tmp_path: Path) -> None:
    result = call_anywhere("topics", "list", "--warehouse", str(tmp_path / "nowhere"))

    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: WAREHOUSE_NOT_FOUND")
    assert "`txntable warehouse create`" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_option_is_stronger_than_the_variable(call: Call, tmp_path: Path) -> None:
    result = call("topics", "list", "--warehouse", str(tmp_path / "nowhere"))

    assert result.exit_code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "list"),
        ("topics", "list", "--warehouse", "x", "--output", "yaml"),
        ("topics", "list", "--warehouse", "x", "--storage-option", "no_pair"),
        ("topics", "create", "--warehouse", "x"),
        ("topics", "drop"),
        ("no-such-noun",),
    ],
)
def test_usage_error_exits_with_2(call_anywhere: Call, arguments: tuple[str, ...]) -> None:
    result = call_anywhere(*arguments)

    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize("before", [True, False])
def test_shared_options_work_before_the_noun_as_well_as_after_the_verb(
    call_anywhere: Call, warehouse: Warehouse, before: bool
) -> None:
    shared = ("--warehouse", warehouse.url, "--output", "json")
    verb = ("warehouse", "describe")

    result = call_anywhere(*shared, *verb) if before else call_anywhere(*verb, *shared)

    assert json.loads(result.stdout)["warehouse"] == warehouse.url


def test_shared_option_before_the_noun_is_stronger_than_the_variable_and_weaker_than_after_the_verb(
    call: Call, warehouse: Warehouse, tmp_path: Path
) -> None:
    nowhere = str(tmp_path / "nowhere")

    over_variable = call("--warehouse", nowhere, "topics", "list")
    under_verb = call("--warehouse", nowhere, "topics", "list", "--warehouse", warehouse.url)

    assert (over_variable.exit_code, under_verb.exit_code) == (1, 0)


def test_storage_option_before_the_noun_reaches_the_store(call: Call) -> None:
    result = call("--storage-option", "aws_region=eu-central-1", "topics", "list")

    assert result.exit_code == 1
    assert "options=aws_region" in result.stderr


def test_storage_option_reaches_the_store(call: Call) -> None:
    result = call("topics", "list", "--storage-option", "aws_region=eu-central-1")

    assert result.exit_code == 1
    assert "a local folder takes no storage options options=aws_region" in result.stderr


def test_error_does_not_repeat_the_value_of_a_storage_option(call_anywhere: Call) -> None:
    result = call_anywhere("topics", "list", "--warehouse", "x", "--storage-option", "hush")

    assert "hush" not in result.stderr


@pytest.mark.parametrize("arguments", [["topics", "list", "--warehouse"], ["--help"]], ids=["topics list", "help"])
def test_commands_are_loaded_only_when_they_are_called(warehouse: Warehouse, arguments: list[str]) -> None:
    script = (
        "import sys; from txntable.cli.main import application\n"
        "try: application(sys.argv[1:])\n"
        "except SystemExit as exit:\n"
        "    print(sorted({'pyspark', 'botocore', 'txntable.jobs.compact'} & set(sys.modules)), exit.code)\n"
        "    print(sorted({'pyarrow', 'numpy', 'txntable.warehouse', 'txntable.cli.topics'} & set(sys.modules)))"
    )

    run = subprocess.run(
        [sys.executable, "-c", script, *arguments, *([] if arguments == ["--help"] else [warehouse.url])],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    loaded, needed = run.stdout.splitlines()[-2:]
    assert loaded == "[] 0"
    assert (needed == "[]") == (arguments == ["--help"])


def test_help_says_what_commands_of_other_packages_are_for_without_loading_them(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "told_extension.py").write_text(
        'raise RuntimeError("loaded")\ndef work():\n    """Do what nobody else does."""\ncommand = on_warehouse(work)\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "told_group.py").write_text(
        'raise RuntimeError("loaded")\napplication = typer.Typer(add_completion=False, help="What many do.")\n'
    )
    points = [
        EntryPoint("told", "told_extension:command", extension.GROUP),
        EntryPoint("many", "told_group:application", extension.GROUP),
    ]
    monkeypatch.setattr(extension, "entry_points", lambda **chosen: EntryPoints(points).select(**chosen))

    said = call("--help").stdout

    assert "Do what nobody else does." in said
    assert "What many do." in said


def test_command_of_another_package_does_not_take_the_name_of_one_of_ours(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("topics", "nowhere:command", extension.GROUP)
    monkeypatch.setattr(extension, "entry_points", lambda **chosen: EntryPoints([point]).select(**chosen))

    assert call("topics", "list", "--output", "json").stdout == "[]\n"


@pytest.mark.parametrize(("mistyped", "meant"), [("topic", "topics"), ("vacum", "vacuum")])
def test_mistyped_command_is_answered_with_the_one_that_was_meant(call: Call, mistyped: str, meant: str) -> None:
    result = call(mistyped)

    assert result.exit_code == 2
    assert f"(did you mean {meant}?)" in result.stderr


def test_commands_of_another_package_may_be_a_group(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "grouped_extension.py").write_text(
        "import typer\n"
        'application = typer.Typer(help="Things of a group.")\n'
        '@application.command()\ndef first():\n    print("the first")\n'
        '@application.command()\ndef second():\n    print("the second")\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("grouped", "grouped_extension:application", extension.GROUP)
    monkeypatch.setattr(extension, "entry_points", lambda **chosen: EntryPoints([point]).select(**chosen))

    assert "Things of a group." in call("--help").stdout
    assert call("grouped", "second").stdout == "the second\n"


def test_command_that_lacks_a_library_says_how_to_get_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "wants_spark.py").write_text("raise ModuleNotFoundError('no', name='pyspark.sql')")
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("spin", "wants_spark:command", extension.GROUP)
    monkeypatch.setattr(extension, "entry_points", lambda **chosen: EntryPoints([point]).select(**chosen))

    result = call("spin", "--fast", "x")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: MISSING_DEPENDENCY")
    assert "pip install 'txntable[spark,demo]'" in result.stderr


def test_alter_is_a_dry_run_until_it_is_told_to_execute_and_says_what_it_means(
    call_anywhere: Call, tmp_path: Path
) -> None:
    place = ("--warehouse", str(tmp_path / "new"))
    assert call_anywhere("warehouse", "create", *place).exit_code == 0
    words = ("warehouse", "alter", *place, "--config", "snapshot_retention_ms=60000", "--output", "json")

    tried, done = call_anywhere(*words), call_anywhere(*words, "--execute")

    for result, executed in ((tried, False), (done, True)):
        assert result.exit_code == 0
        assert "snapshot_retention_ms: takes effect at the next compaction" in result.stderr
        (row,) = json.loads(result.stdout)
        assert (row["value"], row["new_value"], row["executed"]) == (3_600_000, 60_000, executed)
    refused = call_anywhere("warehouse", "alter", *place, "--config", "vacuum_retention_ms=1")
    assert (refused.exit_code, refused.stderr.startswith("error: INVALID_CONFIG")) == (1, True)
    assert call_anywhere("warehouse", "alter", *place).exit_code == 2
    back = call_anywhere("warehouse", "alter", *place, "--delete-config", "snapshot_retention_ms", "--output", "json")
    assert [(row["value"], row["new_value"]) for row in json.loads(back.stdout)] == [(60_000, 3_600_000)]
    both = call_anywhere(*words, "--delete-config", "snapshot_retention_ms")
    assert (both.exit_code, "in --config too" in both.stderr) == (2, True)
