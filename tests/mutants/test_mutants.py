"""Every seeded fault of the protocol still applies, and is found."""

from __future__ import annotations

import ast
import re

import pytest

from tests.mutants.applying import ROOT, occurrences
from tests.mutants.campaign import false_alarms, verdict_of
from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.worlds import WORLDS

EVERY = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@EVERY
def test_mutant_applies_to_the_code_as_it_is(mutant: Mutant) -> None:
    assert [(edit.file, occurrences(edit)) for edit in mutant.edits] == [(edit.file, 1) for edit in mutant.edits]
    texts = {edit.file: (ROOT / edit.file).read_text() for edit in mutant.edits}
    for edit in mutant.edits:
        texts[edit.file] = texts[edit.file].replace(edit.old, edit.new)
    for text in texts.values():
        ast.parse(text)


@EVERY
def test_mutant_breaks_a_rule_that_the_protocol_has(mutant: Mutant) -> None:
    section = re.match(r"\d+(\.\d+)?", mutant.rule)

    assert section is not None
    assert re.search(rf"^##+ {re.escape(section[0])}\.? ", (ROOT / "PROTOCOL.md").read_text(), re.MULTILINE)
    assert mutant.killer.world in WORLDS


def test_mutants_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40


@pytest.mark.nightly
def test_seed_that_kills_holds_without_a_mutant() -> None:
    assert false_alarms(MUTANTS, workers=1) == []


@pytest.mark.nightly
@EVERY
def test_mutant_is_killed_within_its_budget(mutant: Mutant) -> None:
    verdict = verdict_of(mutant)

    assert verdict.killed, verdict
