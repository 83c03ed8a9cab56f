"""What the schedules of the documentation are run on: their files, a warehouse, and a pipeline that dies.

Owns that a file is the page's own: only the folder that the page calls ``/data`` is another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tests.documents.page import ROOT, blocks_of
from tests.schedulers import dying_pipeline
from txntable.warehouse.warehouse import Warehouse

HOW_TO = ROOT / "docs/how-to"
ENVIRONMENTS = ROOT / "build/schedulers"
DAY, OTHER_DAY = "2026-11-20", "2026-11-21"
FLIGHTS = [("AA", 1), ("UA", 2), ("AA", 3), ("UA", 6)]
DELAYS = {"AA": 2.0, "UA": 4.0}
SETTINGS = 'group = "delays"\nsources = ["flights"]\ntargets = ["delays"]\nfunction = "dying_pipeline:delays"\n'


@dataclass(frozen=True, slots=True)
class Lake:
    """A folder in the place of the page's ``/data``, with the warehouse ``lake`` and the settings ``delays.toml``.

    Attributes
    ----------
    folder : Path
        It.
    """

    folder: Path

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse, as it is now."""
        return Warehouse.open(str(self.folder / "lake"), durability="page-cache")

    def fill(self) -> None:
        """Make the warehouse and the settings of the pipeline; its process does not die."""
        warehouse = Warehouse.create(str(self.folder / "lake"), durability="page-cache")
        delay = {"flights": pa.int64(), "delays": pa.float64()}
        for topic, kind in delay.items():
            schema = pa.schema([pa.field("carrier", pa.string()), pa.field("delay", kind)])
            warehouse.admin().create_topic(topic, partitions=2, schema=schema)
        self.fly()
        (self.folder / "delays.toml").write_text(SETTINGS)
        shutil.copy(dying_pipeline.__file__, self.folder)
        self.die_at()

    def fly(self) -> None:
        """Produce the flights of another day."""
        with self.warehouse.producer() as producer:
            for carrier, delay in FLIGHTS:
                producer.send("flights", row={"carrier": carrier, "delay": delay})

    def die_at(self, *deaths: str) -> None:
        """Have the next runs of the pipeline die there."""
        (self.folder / "deaths").write_text("".join(f"{death}\n" for death in deaths))
        (self.folder / "died").write_text("")

    @property
    def died(self) -> list[str]:
        """Where runs have died since then."""
        return (self.folder / "died").read_text().splitlines()

    def delays(self) -> list[tuple[str, float]]:
        """What the pipeline has written, for everyone to see."""
        table = self.warehouse.read_arrow("delays").read_all()
        return sorted(zip(table["carrier"].to_pylist(), table["delay"].to_pylist(), strict=True))

    def write(self, page: str, title: str) -> Path:
        """Write a file that a page shows; return its path."""
        (text,) = [block.text for block in blocks_of(HOW_TO / page) if block.title == title]
        path = self.folder / title
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("/data/", f"{self.folder}/"))
        return path

    def run(self, command: list[str | Path], settings: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a scheduler to its end, and return what it has said on both channels.

        It is in a process group of its own, which the pipeline may take with it.
        """
        log = self.folder / "scheduler.log"
        with log.open("w") as said:
            process = subprocess.Popen(
                [str(word) for word in command],
                cwd=self.folder,
                env=_environment(settings),
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            (self.folder / "scheduler.pid").write_text(str(process.pid))
            process.wait()
        return subprocess.CompletedProcess(command, process.returncode, log.read_text(errors="replace"))


def program(environment: str, name: str) -> Path:
    """Return a program of an environment that ``make schedulers`` has set up."""
    path = ENVIRONMENTS / environment / "bin" / name
    assert path.exists(), f"{path.relative_to(ROOT)} is not there: run make schedulers"
    return path


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which `txntable` is this one."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **settings}
