"""Figures that are quoted: their intervals, their verdicts, and that the page shows what was measured."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import kept_results
from benchmarks.bars import Bar, draw
from benchmarks.kept_results import keep, kept
from benchmarks.measurement import Figure, median_interval, paired_ratio
from benchmarks.page import DOCUMENT, SECTIONS, Line, pictures, tables
from tools.documentation.tables import with_tables

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("rounds", "interval"),
    # The sign test's, as tables of it print them; below six no interval has 95 %.
    [(1, (1, 1)), (3, (1, 3)), (5, (1, 5)), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (12, (3, 10)), (15, (4, 12))],
)
def test_interval_of_a_median_is_the_sign_tests(rounds: int, interval: tuple[float, float]) -> None:
    assert median_interval([*range(rounds, 0, -1)]) == interval


def test_paired_ratio_is_the_median_of_the_rounds_own() -> None:
    # The ratio of the medians would be 1.
    figure = paired_ratio("x", [1.0, 2.0, 9.0], [2.0, 1.0, 3.0])

    assert (figure.value, figure.interval, figure.rounds) == (2.0, (0.5, 3.0), 3)


@pytest.mark.parametrize(
    ("goal", "more", "interval", "met"),
    [
        (1.0, False, (1.0, 1.2), True),
        (1.0, False, (1.01, 1.2), False),
        (8.0, True, (6.0, 8.0), True),
        (8.0, True, (6.0, 7.9), False),
        (None, False, (1.0, 1.2), None),
    ],
)
def test_goal_is_met_where_the_interval_reaches_it(
    goal: float | None, more: bool, interval: tuple[float, float], met: bool | None
) -> None:
    assert Line("r", "f", "w", goal, more).is_met(Figure("f", 5.0, "×", "", interval, 9)) is met


def test_result_is_read_as_it_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "FOLDER", tmp_path)
    figures = [Figure("a ÷ b", 1.5, "×", "of both", (1.0, 2.0), 9), Figure("alone", 3.0, "s")]

    written = keep("light", figures, date(2026, 11, 26), 0.31)

    read = kept(written.stem)
    assert written.stem.startswith("light")
    assert (read.day, read.load) == ("2026-11-26", 0.3)
    assert [*read.figures.values()] == figures


def test_page_shows_the_kept_results() -> None:
    """``python -m benchmarks.page`` writes it again."""
    text = DOCUMENT.read_text(encoding="utf-8")

    assert with_tables(text, tables()) == text
    for path, picture in pictures().items():
        assert path.read_text(encoding="utf-8") == picture
        assert f"(../assets/{path.name})" in text


@pytest.mark.parametrize("document", ["", "<!-- table: b -->\n<!-- end -->", "<!-- table: a -->\n"])
def test_document_without_a_place_for_its_table_is_refused(document: str) -> None:
    with pytest.raises(ValueError, match="asks for other tables"):
        with_tables(document, {"a": "| x |\n"})


def test_every_kept_result_is_shown() -> None:
    # The page of throughput has seconds, no ratios.
    shown = {line.result for lines in SECTIONS.values() for line in lines} | {"large_topics"}

    assert {path.stem for path in kept_results.FOLDER.glob("*.json")} == shown


@pytest.mark.parametrize("name", sorted({line.result for lines in SECTIONS.values() for line in lines}))
def test_result_is_kept_under_the_name_that_the_page_reads(name: str) -> None:
    """What runs without Spark must not bring it in: its version would be a part of the name."""
    benchmark, _, spark = name.partition("-spark")
    program = f"import sys, benchmarks.{benchmark}; print('pyspark' in sys.modules)"

    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT)

    assert spark or ran.stdout == "False\n"


def test_figure_is_shown_once() -> None:
    shown = sorted((line.result, line.figure) for lines in SECTIONS.values() for line in lines)

    assert [one for one, other in pairwise(shown) if one == other] == []


def test_bar_begins_at_one_and_names_are_escaped() -> None:
    drawn = ET.fromstring(draw("a < b", [Bar("half & half", 0.5), Bar("double", 2.0, (1.5, 3.0), 1.1, met=False)]))

    names = {"svg": "http://www.w3.org/2000/svg"}
    half, double = drawn.findall("svg:rect", names)
    assert float(half.get("x", "")) + float(half.get("width", "")) == pytest.approx(float(double.get("x", "")), abs=0.2)
    assert "half & half" in {text.text for text in drawn.findall("svg:text", names)}
