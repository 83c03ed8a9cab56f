"""A stranger's project tests its pipeline with the fixtures, as docs/how-to/test.md has it, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.s3

PAGE = Path(__file__).parents[2] / "docs/how-to/test.md"
WAREHOUSES = """
import pytest
from deltalake import DeltaTable

@pytest.mark.parametrize("number", [1, 2])
def test_topic_is_new(number, txntable_s3_warehouse, txntable_s3):
    txntable_s3_warehouse.admin().create_topic("t")
    DeltaTable(f"{txntable_s3_warehouse.url}/topics/t", storage_options=txntable_s3.storage_options)
    found = txntable_s3.ask("GET", "txntable?list-type=2&delimiter=/").decode()
    assert found.count("<CommonPrefixes>") == 1

@pytest.mark.parametrize("number", [1, 2])
def test_topic_is_new_in_a_folder(number, txntable_warehouse, tmp_path):
    txntable_warehouse.admin().create_topic("t")
    assert txntable_warehouse.url == str(tmp_path / "warehouse")

def test_server_is_empty_at_the_end(txntable_s3):
    assert "<Key>" not in txntable_s3.ask("GET", "txntable?list-type=2").decode()
"""


def run_tests(project: Path, files: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project of these files; every warning is an error there, too."""
    for name, text in files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    # What the project's own tests are run with is none of the stranger's business.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-W",
        "error",
        "-p",
        "no:cacheprovider",
        "--basetemp=temporary",
        *options,
    ]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def shown_files() -> dict[str, str]:
    """Return the files that the page shows, by their names."""
    return dict(re.findall(r'```python title="(\S+\.py)"\n(.*?)```', PAGE.read_text(), re.DOTALL))


def test_examples_of_the_page_pass_and_each_test_has_an_empty_warehouse_that_it_leaves_empty(tmp_path: Path) -> None:
    run = run_tests(tmp_path, shown_files() | {"test_warehouses.py": WAREHOUSES}, "-n", "2")

    assert "7 passed" in run.stdout, run.stdout + run.stderr


def test_test_of_the_page_has_ten_lines() -> None:
    files = shown_files()

    assert sorted(files) == ["conftest.py", "pipeline.py", "test_pipeline.py"]
    assert len(files["test_pipeline.py"].split("@pytest", 1)[1].strip().splitlines()) <= 10


def test_lossy_pipeline_fails_and_without_moto_s3_says_what_to_install(tmp_path: Path) -> None:
    missing = "raise ModuleNotFoundError(\"No module named 'moto'\", name='moto')\n"
    files = shown_files()
    files["pipeline.py"] = files["pipeline.py"].replace("txn.send(", "dict(topic=")

    run = run_tests(tmp_path, files | {"moto/__init__.py": missing})

    assert "2 failed" in run.stdout, run.stdout + run.stderr
    assert "assert [] == [b'42']" in run.stdout
    assert "install txntable[testing] missing=moto" in run.stdout


def test_project_without_the_plugin_has_no_such_fixture(tmp_path: Path) -> None:
    run = run_tests(tmp_path, {"test_it.py": "def test_it(txntable_warehouse): pass\n"})

    assert "fixture 'txntable_warehouse' not found" in run.stdout
