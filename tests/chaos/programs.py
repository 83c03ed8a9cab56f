"""Which program a process of each role runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.chaos.erasing import Erasing, Keeper, Trimming
from tests.chaos.exchange import Merchant
from tests.chaos.founding import Founder
from tests.chaos.life import Life
from tests.chaos.maintenance import Administrating, Compacting, Coordinating, Vacuuming
from tests.chaos.money import Appender, Batcher, Copier, Follower, Teller, Watcher
from tests.chaos.onlooking import Onlooking
from tests.chaos.program import Program
from tests.chaos.reading import Reading
from tests.checker.operations import Level

MAKERS: Mapping[str, Callable[[Life, str], Program]] = {
    "teller": Teller,
    "double": lambda life, _: Teller(life, "double"),
    "batcher": lambda life, _: Batcher(life, "batcher", counted=False),
    "counter": lambda life, _: Batcher(life, "counter", counted=True),
    "appender": lambda life, who: Appender(life, idempotent=who == "idempotent"),
    "copier": lambda life, who: Copier(life, f"copier {who}"),
    "static": lambda life, who: Copier(life, f"copier {who}", instance_id=f"instance {who}"),
    "follower": lambda life, _: Follower(life),
    "reader": lambda life, _: Reading(life),
    "watcher": lambda life, who: Watcher(life, Level(who)),
    "compactor": lambda life, _: Compacting(life),
    "coordinator": lambda life, _: Coordinating(life),
    "vacuum": lambda life, _: Vacuuming(life),
    "admin": lambda life, _: Administrating(life, life.scenario.ids),
    "keeper": Keeper,
    "trimmer": lambda life, _: Trimming(life),
    "deltalake": lambda life, _: Onlooking(life),
    "eraser": lambda life, _: Erasing(life),
    "merchant": Merchant,
    "founder": Founder,
}
"""What a process of each role does."""
