"""Settings of a pipeline: a file and options become one configuration; what is wrong is told before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from txntable.errors import InvalidConfigError
from txntable.jobs.pipeline_settings import find_function, read_settings
from txntable.spark.pipelines.pipeline_config import PipelineConfig

BY_FUNCTION = """
group = "delays"
sources = ["flights", "carriers"]
targets = ["delays"]
function = "math:sqrt"
max_offsets_per_partition = 1000
"""
BY_SQL = """
group = "delays"
sources = ["flights"]
[sql]
delays = "SELECT * FROM flights"
worst = "SELECT max(delay) AS delay FROM flights"
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "pipeline.toml"
    file.write_text(text)
    return file


def test_file_with_a_function_is_read(tmp_path: Path) -> None:
    config = read_settings(written(tmp_path, BY_FUNCTION), {}).config

    assert config == PipelineConfig("delays", ("flights", "carriers"), ("delays",), max_offsets_per_partition=1000)
    assert config.transactional_id == "delays-0"


def test_targets_are_those_of_the_queries_when_sql_is_given(tmp_path: Path) -> None:
    config = read_settings(written(tmp_path, BY_SQL), {}).config

    assert config.outputs == ("delays", "worst")


def test_query_of_the_state_is_no_target(tmp_path: Path) -> None:
    config = read_settings(written(tmp_path, f'state = "worst"{BY_SQL}'), {}).config

    assert (config.targets, config.state) == (("delays",), "worst")


def test_options_are_stronger_than_the_file(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "group": "others",
        "sources": ["trips"],
        "targets": None,
        "sql": {"delays": "SELECT * FROM trips"},
        "instance": "1",
    }

    config = read_settings(written(tmp_path, BY_FUNCTION), options).config

    assert (config.group, config.sources, config.targets, config.instance) == ("others", ("trips",), ("delays",), "1")


def test_module_may_stand_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "module_beside_the_file.py").write_text("def delays(flights):\n    return flights\n")

    assert find_function("module_beside_the_file:delays", tmp_path / "pipeline.toml")(3) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group =", "cannot be read"),
        (f"{BY_FUNCTION}colour = 3", "no such setting"),
        (BY_FUNCTION.replace('"delays"\n', "3\n"), "another kind"),
        (BY_FUNCTION.replace("1000", "true"), "another kind"),
        (BY_FUNCTION.replace("1000", "0"), "at least one offset"),
        (BY_FUNCTION.replace('["delays"]', "[3]"), "another kind"),
        (BY_FUNCTION.replace('targets = ["delays"]', ""), "writes at least one topic"),
        (BY_FUNCTION.replace('["delays"]', '["flights"]'), "and once"),
        (BY_FUNCTION.replace('group = "delays"', ""), "needs a group"),
        (BY_FUNCTION.replace('["flights", "carriers"]', "[]"), "at least one source"),
        (f'{BY_FUNCTION}state = "kept"\ninstance = "1"', "one instance"),
        (f'{BY_FUNCTION}[sql]\ndelays = "SELECT 1"', "either a function or sql"),
        (BY_FUNCTION.replace('function = "math:sqrt"', ""), "either a function or sql"),
        (f'targets = ["delays"]{BY_SQL}', "every topic that is written has a query"),
        (f'state = "kept"{BY_SQL}', "every topic that is written has a query"),
        (BY_FUNCTION.replace("math:sqrt", "math.sqrt"), "module:function"),
        (BY_FUNCTION.replace("math:sqrt", "math:nothing"), "cannot be found"),
        (BY_FUNCTION.replace("math:sqrt", "no_such_module:f"), "cannot be found"),
        (BY_FUNCTION.replace("math:sqrt", "math:pi"), "no function"),
    ],
)
def test_setting_is_refused_when_it_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        read_settings(written(tmp_path, text), {})


def test_file_is_refused_when_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="cannot be read"):
        read_settings(tmp_path / "nowhere.toml", {})
