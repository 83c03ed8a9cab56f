"""What the documents say of the code is true."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tools.documentation import configuration_reference
from tools.documentation.state_tables import group_state_table, transaction_state_table
from txntable.format.key import key_bytes, partition_of
from txntable.log.actions import WRITER_FEATURES
from txntable.partition import offsets
from txntable.segments.topic_metadata import FORMAT

ROOT = Path(__file__).parent.parent.parent
PROTOCOL = (ROOT / "PROTOCOL.md").read_text()

KEYS: dict[tuple[str, str], list[tuple[object, pa.DataType]]] = {
    ("STRING", "`kafka`"): [("kafka", pa.string())],
    ("STRING", "``"): [("", pa.string())],
    ("STRING", "`Zürich`"): [("Zürich", pa.string())],
    ("BINARY", "`00ff` (hex)"): [(b"\x00\xff", pa.binary())],
    ("BYTE", "`-1`"): [(-1, pa.int8())],
    ("SHORT", "`258`"): [(258, pa.int16())],
    ("INT", "`-2`"): [(-2, pa.int32())],
    ("LONG", "`1234567890123`"): [(1234567890123, pa.int64())],
    ("BOOLEAN", "`True`"): [(True, pa.bool_())],
    ("DATE", "`2013-01-01`"): [(dt.date(2013, 1, 1), pa.date32())],
    ("TIMESTAMP", "`2013-01-01 00:00:00+00:00`"): [
        (dt.datetime(2013, 1, 1, tzinfo=dt.UTC), pa.timestamp("us", tz="UTC"))
    ],
    ("DECIMAL(10,2)", "`-1.28`"): [(Decimal("-1.28"), pa.decimal128(10, 2))],
    ("STRING, INT", "`UA`, `1`"): [("UA", pa.string()), (1, pa.int32())],
    ("STRING, INT", "null, `1`"): [(None, pa.string()), (1, pa.int32())],
}
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PROTOCOL.splitlines()]


@pytest.mark.parametrize("states", [transaction_state_table, group_state_table])
def test_states_in_the_protocol_are_the_transition_table(states: Callable[[], str]) -> None:
    assert f"a test keeps it true -->\n{states()}\n" in PROTOCOL


@pytest.mark.parametrize("key", KEYS, ids=" ".join)
def test_golden_key_of_the_protocol_has_those_bytes_and_partitions(key: tuple[str, str]) -> None:
    (row,) = [row for row in ROWS if len(row) == 6 and (row[0], row[2]) == key]
    values = KEYS[key]

    found = key_bytes([value for value, _ in values], [kind for _, kind in values])

    assert found is not None
    assert (f"`{found.hex()}`", str(partition_of(found, 4)), str(partition_of(found, 12))) == (row[3], row[4], row[5])


def test_every_golden_key_of_the_protocol_is_checked() -> None:
    assert sum(len(row) == 6 and bool(re.fullmatch(r"`[0-9a-f]*`", row[3])) for row in ROWS) == len(KEYS)


def test_protocol_names_the_format_the_features_and_the_numbers() -> None:
    assert f"**`{FORMAT}`**" in PROTOCOL
    for feature in WRITER_FEATURES:
        assert feature in PROTOCOL
    for name in ("NEXT_OFFSET", "LOG_START", "HIGH_WATERMARK", "LAST_STABLE", "DECIDED_THROUGH", "MERGED_THROUGH"):
        assert f"`{getattr(offsets, name)}/t" in PROTOCOL, name


def test_json_examples_of_the_protocol_are_what_the_golden_logs_say() -> None:
    text = PROTOCOL.split("## 12.", 1)[1]
    examples = re.findall(r"`([\w/]+)`, version (\d+)\n\n```json\n(.*?)```", text, re.DOTALL)

    for log, version, example in examples:
        entry = ROOT / "tests/golden/format-1" / log / "_delta_log" / f"{int(version):020d}.json"
        assert json.loads(example.replace("\n", " ")) == json.loads(entry.read_text().splitlines()[1])
    assert len(examples) == 4


@pytest.mark.parametrize("document", ["README.md", "PROTOCOL.md", "DECISIONS.md", "CONTRIBUTING.md"])
def test_every_local_link_leads_somewhere(document: str) -> None:
    text = (ROOT / document).read_text()
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    links += re.findall(r"`((?:txntable|coordinator|tests|benchmarks|jobs)/[\w/.-]+)`", text)
    missing = [link for link in links if not (ROOT / link).exists()]
    assert missing == []


def test_decisions_are_numbered_in_order() -> None:
    numbers = [int(n) for n in re.findall(r"^## (\d+)\.", (ROOT / "DECISIONS.md").read_text(), re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_reference_of_settings_is_the_same_in_every_process() -> None:
    """A default that Python shows by its place in memory is none to a reader."""
    assert " at 0x" not in configuration_reference.page()
