"""The pages say what is so: their code runs, their commands exist, and every one of them is in the site."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import txntable
from tests.documents.page import PAGES, ROOT, SHELLS, Reader, blocks_of, code_of, named, needs_spark
from tests.documents.shell import fault_of, lines_of
from tests.kafka_behaviours import BEHAVIOURS
from tools.documentation import api_reference, command_reference, error_reference, kafka_differences, state_tables
from tools.documentation.generated import SITE_PAGES, made
from tools.documentation.site import Site
from txntable import errors

SITE = Site(ROOT, SITE_PAGES)
DOCUMENTS = [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "infra/RUNBOOK.md", "infra/STORES.md"))]

WRITTEN = [
    *(page for page in PAGES if page.parent.name != "reference"),
    *(page for page in sorted(ROOT.glob("*.md")) if page not in PAGES),
    *sorted((ROOT / "infra").glob("*.md")),
]


@pytest.mark.parametrize("page", [page for page in PAGES if not needs_spark(page)], ids=named)
def test_code_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    run = Reader(tmp_path, {}).read(page)

    assert run >= len(list(code_of(page))) - sum(block.title is not None for block in blocks_of(page))


def test_who_reads_on_begins_each_tutorial_with_a_warehouse_that_is_not_there_yet() -> None:
    pages = [ROOT / "README.md", *(page for page in PAGES if page.parent.name == "tutorial")]
    made = [url for page in pages for block in blocks_of(page) for url in re.findall(r'create\("(.+?)"', block.text)]

    assert len(made) == len(pages)
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_commands_of_a_document_exist_and_take_their_arguments(document: Path) -> None:
    lines = [line for block in blocks_of(document) if block.language in SHELLS for line in lines_of(block.text)]

    assert [fault for line in lines if (fault := fault_of(line))] == []


@pytest.mark.parametrize(
    "line",
    [
        "txntable topic list",
        "txntable topics list --all",
        "txntable topics describe --all",
        "while read -r name; do txntable topic list; done",
        "make tests",
        "python -m txntable.jobs.no_such_job",
        "spark-submit jobs/compact.py --twice",
        "pip install 'txntable[sparks]'",
        "kafka-topics.sh --list",
        "X=1 txntable topics list | txntable consume orders --folow > records.jsonl",
    ],
)
def test_command_that_does_not_exist_is_found(line: str) -> None:
    assert fault_of(line) is not None


def prose_of(document: Path) -> Iterator[tuple[int, str]]:
    """The lines of a document that people wrote, with their numbers: no code, no table, nothing between comments."""
    code = made_from = False
    for number, line in enumerate(document.read_text().splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        made_from = line.startswith("<!-- table:") or (made_from and line != "<!-- end -->")
        if not code and not made_from and not line.lstrip().startswith(("#", "|", "![")):
            yield number, line


@pytest.mark.parametrize("document", WRITTEN, ids=named)
def test_prose_of_a_document_has_at_most_120_characters_a_line(document: Path) -> None:
    wide = [number for number, line in prose_of(document) if len(line) > 120 and " " in line.strip()]

    assert wide == []


def pages_of(navigation: list[Any]) -> Iterator[str]:
    for entry in navigation:
        for target in entry.values():
            yield from [target] if isinstance(target, str) else pages_of(target)


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]

    assert sorted(pages_of(navigation)) == sorted(SITE.pages)


def test_pages_that_are_made_from_the_code_are_as_it_is() -> None:
    """Make them again: python -m tools.documentation."""
    assert [page for page, text in made(ROOT).items() if (ROOT / page).read_text() != text] == []


def test_site_has_no_hidden_code(tmp_path: Path) -> None:
    SITE.write(tmp_path / "site")

    texts = {page: (tmp_path / "site" / page).read_text() for page in SITE.pages}
    assert [page for page, text in texts.items() if re.search(r"^<!-- prepare", text, re.MULTILINE)] == []


def test_no_page_shows_what_another_host_draws_or_sends(tmp_path: Path) -> None:
    SITE.write(tmp_path / "site")

    fetched = re.compile(
        r"^ *```mermaid|!\[[^\]]*\]\(\s*(https?:)?//|<(script|iframe|link|img|source)\b[^>\n`]*//", re.MULTILINE
    )
    texts = {page: (tmp_path / "site" / page).read_text() for page in SITE.pages}
    assert {page: found[0] for page, text in texts.items() if (found := fetched.search(text))} == {}
    configured = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    assert configured["theme"]["font"] is False
    assert configured["markdown_extensions"]["pymdownx"]["superfences"]["custom_fences"] == []
    assert {"extra_javascript", "extra_css"} & configured.keys() == set()


def test_link_of_a_page_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[there](nowhere.md)")
    for name in SITE.documents:
        if not name.startswith("docs/"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("")

    with pytest.raises(FileNotFoundError, match=r"page=docs/index\.md target=nowhere\.md"):
        Site(tmp_path, {}).write(tmp_path / "site")


def test_every_public_name_is_in_the_reference() -> None:
    shown = {name.rpartition(".")[2] for _, names in api_reference.NAMES.values() for name in names}

    assert set(txntable.__all__) - set(errors.__all__) - shown == set()


def test_every_error_is_in_the_reference_with_its_code() -> None:
    page = error_reference.page()

    kinds = {name for name in errors.__all__ if f"## {name}\n" in page} | {"TxnTableError"}
    assert [name for name in errors.__all__ if name not in kinds and f"| `{name}` | `" not in page] == []


def test_every_command_is_in_the_reference() -> None:
    found = {path for path, _ in command_reference.commands()}

    assert {"txntable topics create", "txntable status", "txntable pipeline", "txntable compact"} <= found
    page = command_reference.page()
    assert [path for path in found if f"## {path}\n" not in page] == []


def test_differences_from_kafka_are_those_of_the_tests() -> None:
    section = kafka_differences.section()

    noted = [behaviour for behaviour in BEHAVIOURS if behaviour.note]
    assert section.count("\n") - 2 == len(noted)
    assert all(f"| {behaviour.number} | " in section for behaviour in noted)


def test_states_of_a_page_are_those_of_the_protocol_with_their_meanings() -> None:
    section = state_tables.transaction_section()

    for line in state_tables.transaction_state_table().splitlines()[2:]:
        state, following = line.strip("| ").split(" | ")
        (row,) = [row for row in section.splitlines() if row.startswith(f"| {state} | ")]
        assert row.endswith(f" | {following} |")
        assert len(row.split(" | ")) == 3
