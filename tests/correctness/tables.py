"""What the tables of ``docs/correctness.md`` hold: the catalogues of the tests, and the results of their last runs.

Results are JSON files beside this module, written by the commands that the document names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.chaos.campaign import total
from tests.chaos.scenarios import SCENARIOS
from tests.checker.anomalies import ANOMALIES
from tests.mutants.catalogue import MUTANTS
from tests.simulation.every_world import EVERY, about
from tests.simulation.weather import ORDINARY
from tools.documentation.tables import table

DOCUMENT = Path(__file__).parents[2] / "docs" / "correctness.md"
RESULTS = Path(__file__).parent / "results"
DATES = RESULTS / "dates.json"
MADE_BY: Mapping[str, str] = {
    "simulation": "the simulation",
    "exploration": "the exploration",
    "model": "the model",
    "mutants": "the mutants",
    "chaos-local": "chaos, everyday, on a folder",
    "chaos-s3": "chaos, everyday, on S3's API",
    "chaos-scenarios": "chaos, the other scenarios",
}
"""Each result, and what the document calls what made it."""


def result(name: str) -> dict[str, Any]:
    """Return what the last run of a command has written."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def dates() -> str:
    """Return when each result was made."""
    made = result(DATES.stem)
    return table(("the figures of", "were made on"), [(words, made[name]) for name, words in MADE_BY.items()])


def simulation_runs() -> str:
    """Return how much the simulation ran."""
    ran = result("simulation")
    words = {
        "runs": "runs",
        "fair": "of these without any fault",
        "processes": "processes",
        "steps": "storage calls",
        "kills": "kills",
        "pauses": "pauses of one process, in which time passes",
        "jumps": "jumps of time for all",
        "clocks": "wall clocks set",
        "bursts": "bursts of failing calls",
        "landed": "writes that landed late",
        "failures": "failures",
        "seconds": "seconds, on a loaded machine",
    }
    return table(("of the last campaign", "number"), [(word, ran[name]) for name, word in words.items()])


def worlds() -> str:
    """Return the simulation's worlds, and how often each was run."""
    ran = result("simulation")["worlds"]
    return table(("world", "what happens in it", "runs"), [(name, about(name), ran[name]) for name in EVERY])


def faults() -> str:
    """Return each fault of the simulation, and how often which operation met it."""
    met: Mapping[str, Mapping[str, int]] = result("simulation")["faults"]
    rows: Iterator[tuple[str, str, str]] = (
        (fault.name, fault.value, ", ".join(f"{name} {many:,}" for name, many in met.get(fault.name, {}).items()))
        for fault in ORDINARY
    )
    return table(("fault of a storage call", "what happens", "met by"), rows)


def exploration() -> str:
    """Return what was explored exhaustively."""
    rows = [
        (
            ran["program"],
            ran["bound"],
            ran["schedules"],
            ran["states"],
            ran["checked"],
            ", ".join(f"{name} {many:,}" for name, many in sorted(ran["named"].items())),
        )
        for ran in result("exploration")["exploration"]
    ]
    return table(("program", "bound", "schedules", "states", "different ends", "ends that must be reached"), rows)


def anomalies() -> str:
    """Return the anomalies that the checker finds."""
    rows = [
        (each.number, each.name, each.sources, each.definition + ("" if each.violation else " *Reported only.*"))
        for each in ANOMALIES
    ]
    return table(("#", "anomaly", "from", "found when"), rows)


def mutants() -> str:
    """Return the mutants, and what has killed each."""
    verdicts = {verdict["name"]: verdict for verdict in result("mutants")["verdicts"]}
    rows = []
    for mutant in MUTANTS:
        verdict = verdicts[mutant.name]
        killed = f"{verdict['world']}, seed {verdict['seed']}" if verdict["killed"] else "**survives**"
        rows.append((mutant.breaks, mutant.rule, killed, verdict["how"]))
    return table(("the protocol, broken: …", "PROTOCOL.md §", "killed by", "what failed"), rows)


def model() -> str:
    """Return how far the models were explored."""
    rows = [
        (ran["model"], ran["states"], ran["transitions"], ran["depth"], "all" if ran["complete"] else "up to that many")
        for ran in result("model")["explorations"]
    ]
    return table(("model", "distinct states", "transitions", "depth", "explored"), rows)


def model_rules() -> str:
    """Return which rules of PROTOCOL.md the models have, and how each invariant was seen to fail."""
    rows = [
        (rule["section"], rule["says"], ", ".join(rule["actions"]), ", ".join(rule["invariants"]))
        for rule in result("model")["protocol"]
    ]
    return table(("PROTOCOL.md §", "rule", "actions and rules of the model", "invariants"), rows)


def model_mutants() -> str:
    """Return the rules that were taken out of the models, the invariant that broke, and after how many steps."""
    rows = [(each["mutant"], each["breaks"], len(each["trace"])) for each in result("model")["mutants"]]
    return table(("the model …", "breaks", "in so many steps, at least"), rows)


def chaos() -> str:
    """Return what the last runs of real processes did."""
    ran = [result("chaos-local"), result("chaos-s3")]
    words = {
        "seconds": "seconds of blows",
        "processes": "processes",
        "kills": "SIGKILL",
        "pauses": "SIGSTOP and SIGCONT",
        "doubles": "of these replaced by another, then resumed",
        "longest_pause_s": "longest pause, seconds",
        "committed": "transactions committed",
        "aborted": "aborted",
        "refused": "refused",
        "unknown": "of unknown outcome",
        "records": "records sent",
        "snapshots": "snapshots read beside the blows",
        "polled": "polls that returned records",
        "vacuumed": "files that vacuum deleted, at least",
        "merged": "compactions' commits",
        "operations": "operations judged",
        "violations": "violations",
    }
    rows = [(word, *(each[name] for each in ran)) for name, word in words.items()]
    return table(("of the last run", "local folder", "S3 API, with faults"), rows)


def scenarios() -> str:
    """Return what the last runs of each scenario of chaos did."""
    words = {
        "kills": "SIGKILL",
        "pauses": "SIGSTOP",
        "doubles": "of these beside a successor",
        "longest_pause_s": "longest, s",
        "late": "puts done late",
        "cleaned": "log entries cleaned up",
        "vacuumed": "files vacuumed",
        "merged": "compactions",
        "committed": "committed",
        "operations": "judged",
        "violations": "violations",
    }
    ran = {name: total(runs) for name, runs in result("chaos-scenarios").items()}
    rows = [
        (name, SCENARIOS[name].about, ran[name]["episodes"], *(ran[name].get(each, 0) for each in words))
        for name in ran
    ]
    return table(("scenario", "what happens in it", "episodes", *words.values()), rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "dates": dates,
    "simulation": simulation_runs,
    "worlds": worlds,
    "faults": faults,
    "exploration": exploration,
    "anomalies": anomalies,
    "mutants": mutants,
    "model": model,
    "model-rules": model_rules,
    "model-mutants": model_mutants,
    "chaos": chaos,
    "scenarios": scenarios,
}
