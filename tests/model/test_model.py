"""The models of the protocol: no invariant fails, each can fail, and each rule is one of PROTOCOL.md's."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.model.breadth_first import BreadthFirst, Exploration, never_taken
from tests.model.files import FileModel
from tests.model.mutants import LOOSE, MUTANTS, QUICK, Mutant
from tests.model.protocol_rules import COVERED, NOT_MODELLED
from tests.model.sizes import FORBIDDEN, all_models, small_models
from tests.model.slots import SlotModel
from tests.model.transition_system import Action, Invariant, Model

PROTOCOL = (Path(__file__).parent.parent.parent / "PROTOCOL.md").read_text()
# What the sizes of a build are too small for; `python -m tests.model` fails unless these are taken, too.
OF_LARGER_SIZES = {"EXPIRE PRODUCERS"}


@pytest.fixture(scope="module")
def explorations() -> list[Exploration]:
    return [BreadthFirst(model).explore() for model in small_models()]


def test_no_world_of_a_small_model_breaks_an_invariant(explorations: list[Exploration]) -> None:
    assert {found.model: found.violation for found in explorations if found.violation} == {}
    assert all(found.complete for found in explorations)


def test_each_action_of_a_model_is_taken_in_one_of_its_sizes(explorations: list[Exploration]) -> None:
    assert never_taken(explorations) == FORBIDDEN | OF_LARGER_SIZES


def test_action_is_never_taken_where_only_another_model_takes_one_of_that_name() -> None:
    one, larger = BreadthFirst(FileModel().model()).explore(), BreadthFirst(SlotModel((1, 1)).model()).explore()
    idle = replace(one, taken=dict.fromkeys(one.taken, 0))
    other = replace(larger, taken=larger.taken | dict.fromkeys(one.taken, 1))

    assert never_taken([idle, one]) == set()
    assert never_taken([idle, other]) >= set(one.taken)


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: f"{mutant.name}: {mutant.invariant}")
def test_invariant_fails_in_the_model_that_lacks_its_rule(mutant: Mutant) -> None:
    violation = mutant.explore().violation

    assert violation is not None
    assert violation.invariant == mutant.invariant


def every(model: Model[Any]) -> list[Action[Any] | Invariant[Any]]:
    return [*model.actions, *model.invariants, *model.at_rest]


def test_each_invariant_has_a_mutant_that_breaks_it() -> None:
    invariants = {each.name for model in all_models() for each in (*model.invariants, *model.at_rest)}

    assert {mutant.invariant for mutant in QUICK} == invariants


def test_each_rule_has_a_mutant_without_it_or_is_said_to_be_defended_twice() -> None:
    rules = {name for model in all_models() for name in model.rules()}
    alone = {mutant.rules[0] for mutant in MUTANTS if len(mutant.rules) == 1}

    assert alone | set(LOOSE) == rules
    assert not alone & set(LOOSE)


def sections() -> set[str]:
    """The numbers of PROTOCOL.md's sections, and of the numbered rules in §4.2."""
    found = set(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", PROTOCOL, re.MULTILINE))
    writer_rules = PROTOCOL.split("### 4.2 ")[1].split("### ")[0]
    return found | {f"4.2 rule {number}" for number in re.findall(r"^(\d+)\. ", writer_rules, re.MULTILINE)}


def test_each_section_that_the_models_name_is_one_of_the_protocol() -> None:
    named = {each.section for model in all_models() for each in every(model)}
    named |= {section for model in all_models() for section in model.rules().values()}
    named |= {each.section for each in COVERED} | set(NOT_MODELLED)

    assert named - sections() == set()


def test_each_rule_of_the_protocol_is_in_a_model_or_said_not_to_be() -> None:
    asked = {number for number in sections() if number.startswith("4.2 rule")}
    asked |= {"5.4", "5.6", "6.3", "6.4", "7", "8.1"}

    assert asked - {each.section for each in COVERED} - set(NOT_MODELLED) == set()


def test_each_action_rule_and_invariant_that_covers_a_section_exists() -> None:
    actions = {name for model in all_models() for name in (*(each.name for each in model.actions), *model.rules())}
    invariants = {each.name for model in all_models() for each in (*model.invariants, *model.at_rest)}

    assert {name for each in COVERED for name in each.actions} - actions == set()
    assert {name for each in COVERED for name in each.invariants} == invariants
