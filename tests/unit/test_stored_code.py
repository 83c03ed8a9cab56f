"""Nothing that a warehouse holds is ever run: no module of ours unpickles, evaluates or imports by a stored name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("coordinator", "txntable", "compaction", "jobs", "infra")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
# Modules that make code or objects of bytes, and calls that make code of text.
LIBRARIES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "jsonpickle", "yaml", "code", "runpy"}
CALLS = {"eval", "exec", "compile", "__import__", "import_module", "spec_from_file_location"}
ALLOWED = {
    # Between a Spark driver and its own executors, through Spark's channel: no byte of it is in a warehouse.
    ("txntable/spark/writing/distributed_tasks.py", "pickle"),
    # Spark is an extra: it is imported by a name that stands in the code, when it is needed.
    ("txntable/spark/writing/distribution.py", "import_module"),
    ("txntable/spark/writing/streaming_query.py", "import_module"),
    ("txntable/spark/writing/writer.py", "import_module"),
    ("txntable/spark/writing/spark_written_segments.py", "import_module"),
    ("txntable/spark/scan/bounded_read.py", "import_module"),
    ("txntable/spark/scan/reader.py", "import_module"),
    # What needs Spark, when a DataFrame is written.
    ("txntable/spark/writing/transactional_write.py", "import_module"),
    ("jobs/compact.py", "import_module"),
    # Spark for one direction of a mirror, a library that may not be there for the other; their names are constants.
    ("jobs/mirror/command.py", "import_module"),
    ("jobs/mirror/kafka_client.py", "import_module"),
    ("jobs/catalog.py", "import_module"),
    # So is moto, an extra of tests.
    ("txntable/testing/pytest_plugin.py", "import_module"),
    # Of ours, once signals are handled: importing takes most of a short command's time.
    ("jobs/command.py", "import_module"),
    # Names of the package, when they are first asked for, by a table of its own.
    ("txntable/__init__.py", "import_module"),
    # What is said of a name that it has not; their names are constants.
    ("txntable/errors.py", "import_module"),
    # Its clients, when the first of them is asked for.
    ("txntable/warehouse/warehouse.py", "import_module"),
    # The clients of remote stores, which a local folder does not need.
    ("txntable/storage/open.py", "import_module"),
    # The warehouse's clients, which are loaded when the first one is asked for.
    ("txntable/warehouse/warehouse.py", "import_module"),
    # The user's own function, which the user's own file of settings names: never a warehouse.
    ("jobs/pipeline_settings.py", "import_module"),
}


def made_to_code(tree: ast.Module) -> Iterator[str]:
    """Yield what a module uses of the above; regular expressions are compiled by an attribute of ``re``."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name.split(".")[0] in LIBRARIES)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (module for _ in names if module.split(".")[0] in LIBRARIES)
                yield from (alias.name for alias in names if alias.name in CALLS and module != "re")
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in CALLS:
                if not (isinstance(value, ast.Name) and value.id == "re"):
                    yield name
            case ast.Call(keywords=keywords):
                yield from ("shell" for keyword in keywords if keyword.arg == "shell")
                yield from ("allow_pickle" for keyword in keywords if keyword.arg == "allow_pickle")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_makes_no_code_of_data_but_where_it_is_allowed(path: Path) -> None:
    found = {(str(path.relative_to(ROOT)), name) for name in made_to_code(ast.parse(path.read_text()))}

    assert found - ALLOWED == set()


def test_every_exception_is_still_needed() -> None:
    found = {
        (str(path.relative_to(ROOT)), name) for path in MODULES for name in made_to_code(ast.parse(path.read_text()))
    }

    assert ALLOWED - found == set()


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from yaml import load", "eval(x)", "builtins.exec(x)", "f(shell=True)", "__import__(name)"],
)
def test_code_of_data_would_be_found(source: str) -> None:
    assert list(made_to_code(ast.parse(source)))
