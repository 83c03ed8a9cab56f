"""``docs/correctness.md`` tells of the last runs, of all of them, and of no test that there is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.chaos.campaign import EVERYDAY
from tests.chaos.scenarios import SCENARIOS
from tests.checker.anomalies import ANOMALIES
from tests.correctness.tables import DOCUMENT, TABLES, result
from tests.exploration.programs import PROGRAMS
from tests.model.protocol_rules import COVERED
from tests.mutants.catalogue import MUTANTS
from tests.simulation.every_world import EVERY
from tests.simulation.weather import ORDINARY
from tools.documentation.tables import with_tables

ROOT = Path(__file__).parents[2]
TEXT = DOCUMENT.read_text(encoding="utf-8")


def test_tables_are_those_of_the_last_results() -> None:
    assert with_tables(TEXT, {name: make() for name, make in TABLES.items()}) == TEXT


def test_results_are_of_the_catalogues_as_they_are() -> None:
    assert [each.number for each in ANOMALIES] == list(range(1, 35))
    assert result("mutants")["survived"] == result("mutants")["false_alarms"] == []
    assert [each["name"] for each in result("mutants")["verdicts"]] == [each.name for each in MUTANTS]
    assert {each["program"] for each in result("exploration")["exploration"]} == {
        program.name for program in PROGRAMS if program.bounds[0] is not None
    }
    assert [rule["section"] for rule in result("model")["protocol"]] == [rule.section for rule in COVERED]
    assert result("chaos-local")["violations"] == result("chaos-s3")["violations"] == 0
    assert {EVERYDAY, *result("chaos-scenarios")} == set(SCENARIOS)
    assert not [each for runs in result("chaos-scenarios").values() for each in runs if each["violations"]]


def test_simulation_told_of_is_a_large_one_in_which_everything_went_wrong() -> None:
    ran = result("simulation")

    assert ran["runs"] >= 2_000
    assert ran["failures"] == 0
    assert set(ran["worlds"]) == set(EVERY)
    assert set(ran["faults"]) == {fault.name for fault in ORDINARY}
    assert min(ran[name] for name in ("fair", "kills", "pauses", "jumps", "clocks", "bursts", "landed")) > 0


def test_numbers_in_the_text_are_those_of_the_code() -> None:
    vectors = (ROOT / "tests/conformance/vectors").glob("*.json")
    cases = sum(len(json.loads(path.read_text(encoding="utf-8"))["cases"]) for path in vectors)
    lines = len((ROOT / "tests/conformance/clean_room.py").read_text(encoding="utf-8").splitlines())

    assert f"PROTOCOL.md as {cases:,} cases in JSON" in TEXT
    assert f"a second implementation ({round(lines, -2):,} lines" in TEXT


def test_every_test_that_the_document_names_exists() -> None:
    named = re.findall(r"`((?:tests|examples)/[\w/*.]+?)(?:::(\w+))?`", TEXT)

    assert named
    for path, test in named:
        files = sorted(ROOT.glob(path))
        assert files, path
        assert not test or any(f"def {test}(" in file.read_text() for file in files), test
