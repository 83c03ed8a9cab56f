"""The page, read with a parser that knows nothing of it."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.page import stage
from tests.simulation.site import Site
from tests.unit.report.reading_page import Element, read_page
from txntable.admin.upkeep import Duty, Finding
from txntable.format.control_characters import CONTROL, escaped
from txntable.report.collector import Collector
from txntable.report.page import LONGEST_COMMAND, ending_command, render_page
from txntable.report.page_text import LONGEST_NAME
from txntable.report.warehouse_report import Bounded, NewestRecords, ReportLimits, WarehouseReport

ELEMENTS = frozenset(
    re.findall(
        r"\w+",
        """html head meta title style body a header p h1 h2 h3 bdi time span b nav main section article ul ol li pre
        code div table thead tbody tr th td abbr svg rect line text g details summary footer i""",
    )
)
"""What a page without a server has; a script is not among it."""
ATTRIBUTES = frozenset(
    re.findall(
        r"[\w-]+",
        """lang charset http-equiv content name class href datetime id aria-labelledby aria-label aria-hidden role
        tabindex scope colspan title height width x x1 x2 y y1 y2 rx text-anchor""",
    )
)


@pytest.fixture(scope="module")
def hostile() -> WarehouseReport:
    return stage.hostile()


@pytest.fixture(scope="module")
def busy() -> WarehouseReport:
    return stage.busy()


def elements(page: str) -> list[Element]:
    return list(read_page(page).all())


def test_page_has_no_element_and_no_attribute_of_what_was_stored(hostile: WarehouseReport) -> None:
    found = elements(render_page(hostile))

    assert {element.name for element in found} <= ELEMENTS
    assert {name for element in found for name in element.attributes} <= ATTRIBUTES


@pytest.mark.parametrize("text", stage.HOSTILE)
def test_page_shows_every_hostile_text_as_text(hostile: WarehouseReport, text: str) -> None:
    document = read_page(render_page(hostile))
    shown = escaped(text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME])

    names = ["".join(each.own) for each in document.all("bdi", class_="name")]
    values = ["".join(each.own) for each in document.first(id="records").all("bdi")]

    # As an id, as a group; and as a key and a value.
    assert sum(name.startswith(shown) for name in names) >= 2
    assert sum(value.startswith(shown) for value in values) >= 2


def test_page_has_no_character_that_turns_or_steers_text(hostile: WarehouseReport) -> None:
    assert set(CONTROL.findall(render_page(hostile))) == {"\n"}


def test_every_name_of_another_stands_apart_from_the_text_around_it(hostile: WarehouseReport) -> None:
    """Letters that are written from right to left would turn what stands beside them."""
    hebrew = "\u05e9\u05dc\u05d5\u05dd"
    document = read_page(render_page(hostile))

    around = {element.name for element in document.all() if hebrew in "".join(element.own)}

    assert around <= {"bdi", "title", "code", "span"}
    assert all("word" in each.attributes["class"] for each in document.all("span") if hebrew in "".join(each.own))


def test_links_lead_to_places_of_the_page_only(hostile: WarehouseReport) -> None:
    found = elements(render_page(hostile))

    links = [element.attributes["href"] for element in found if "href" in element.attributes]
    ids = [element.attributes["id"] for element in found if "id" in element.attributes]

    assert links
    assert set(links) <= {f"#{each}" for each in ids}
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("refresh_s", [None, 5])
def test_policy_of_the_page_names_its_style_and_its_script_by_their_digests(
    hostile: WarehouseReport, refresh_s: int | None
) -> None:
    document = read_page(render_page(hostile, refresh_s))
    (policy,) = (
        each.attributes["content"] for each in document.all("meta", **{"http-equiv": "Content-Security-Policy"})
    )

    def digest(name: str) -> str:
        (text,) = ("".join(each.own) for each in document.all(name))
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest('style')}'" in policy
    assert "unsafe" not in policy
    if refresh_s is None:
        assert not list(document.all("script"))
        assert "script-src" not in policy
    else:
        assert f"script-src 'sha256-{digest('script')}'; connect-src 'self'" in policy


def test_page_loads_nothing(hostile: WarehouseReport) -> None:
    found = elements(render_page(hostile))

    assert not [each for each in found if each.attributes.keys() & {"src", "srcset", "style", "data", "action"}]
    style = "".join("".join(each.own) for each in found if each.name == "style")
    assert not re.search(r"url\(|@import|@font-face", style)


def test_page_has_one_main_heading_and_leaves_no_level_out(busy: WarehouseReport) -> None:
    levels = [int(each.name[1]) for each in elements(render_page(busy)) if re.fullmatch(r"h\d", each.name)]

    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_table_has_headers_that_say_what_they_head(busy: WarehouseReport) -> None:
    for table in read_page(render_page(busy)).all("table"):
        headers = list(table.all("th"))

        assert headers
        assert {each.attributes["scope"] for each in headers} <= {"col", "row", "rowgroup"}


def test_every_drawing_has_words_or_stands_beside_them(busy: WarehouseReport) -> None:
    for drawing in read_page(render_page(busy)).all("svg"):
        attributes = drawing.attributes

        assert (
            (attributes.get("role") == "img" and attributes["aria-label"])
            or "aria-hidden" in attributes
            or (
                # The axis, whose box is hidden whole.
                {each.name for each in drawing.children} == {"text"}
            )
        )


def test_page_tells_what_holds_readers_back_first_and_how_to_end_it(busy: WarehouseReport) -> None:
    document = read_page(render_page(busy))
    section = document.first("main").children[0]

    assert section.first("h2").text == (
        "2 open transactions hold readers back in 3 partitions, where 9 committed records and 1 group wait."
    )
    commands = [each.text for each in section.all("code")]
    assert commands == [
        "txntable --warehouse s3://lake/shop transactions abort export-to-erp --execute",
        "txntable --warehouse s3://lake/shop transactions abort bank-transfers --execute",
    ]
    assert "orders-0: 3 committed records behind offset 19; billing waits there" in section.text
    assert document.first("title").text.startswith("Held back")


def test_title_says_what_is_worst(busy: WarehouseReport) -> None:
    def title(report: WarehouseReport) -> str:
        return read_page(render_page(report)).first("title").text.partition(":")[0]

    def text(report: WarehouseReport) -> str:
        return read_page(render_page(report)).first("main").text

    damaged = NewestRecords("orders", (), "CORRUPT_MESSAGE a segment cannot be read")
    late = Finding(Duty.MERGE, "orders")

    assert title(replace(busy, records=Bounded((damaged,), 1))) == "Records that cannot be read"
    assert title(busy) == "Held back"
    assert title(replace(stage.empty(), findings=Bounded((late,), 1))) == "Late"
    assert title(stage.empty()) == "All is well"
    told = text(replace(stage.empty(), records=Bounded((damaged,), 1)))
    assert "some of the newest records cannot be read" in told
    assert "txntable warehouse verify" in told
    assert "All is well: nothing is late" not in told


def test_page_of_a_new_warehouse_says_that_all_is_well() -> None:
    document = read_page(render_page(stage.empty()))

    assert document.first(id="held-back").text == "All is well: no transaction holds readers back in 0 topics."
    assert "nothing is late" in document.first(id="health").text
    assert "No transaction yet" in document.first(id="transactions").text


def test_command_of_a_hostile_id_is_one_word_for_a_shell(hostile: WarehouseReport) -> None:
    for one in hostile.blocking.shown:
        command = ending_command(hostile.url, one)
        assert command is not None
        if one.transactional_id is not None and len(one.transactional_id) < LONGEST_COMMAND:
            words = shlex.split(command)
            assert words[:3] == ["txntable", "--warehouse", hostile.url]
            assert one.transactional_id in words
        else:
            assert command == "txntable status"


def test_page_tells_committed_aborted_and_open_records_apart(busy: WarehouseReport) -> None:
    rows = list(read_page(render_page(busy)).first(id="records").all("tr"))

    for outcome in ("committed", "aborted", "open"):
        of_outcome = [row for row in rows if row.attributes.get("class") == outcome]
        assert of_outcome
        assert {row.first("span", class_="outcome").text for row in of_outcome} == {outcome}


def test_page_says_what_it_leaves_out() -> None:
    site = Site()
    warehouse = site.create()
    for number in range(4):
        warehouse.admin().create_topic(f"topic-{number}", partitions=5)
        with warehouse.producer(f"id-{number}") as producer:
            producer.init_transactions()
            with producer.transaction() as transaction:
                transaction.send(f"topic-{number}", value=b"x")
    limits = ReportLimits(lanes=1, topics=3, partitions=2, record_topics=1)

    document = read_page(render_page(Collector(warehouse, limits).collect()))

    assert [each.text for each in document.first(id="topics").all("p", class_="left-out")] == [
        *["3 more partitions are not shown here."] * 3,
        "1 more topic, with older writes, is not shown here.",
    ]
    assert "3 more ids of these entries are not shown here." in document.first(id="transactions").text
    assert "3 more topics, with older records, are not shown here." in document.first(id="records").text


def test_page_of_many_lanes_stays_small(busy: WarehouseReport) -> None:
    (lane,) = (each for each in busy.history.lanes.shown if each.transactional_id == "payments-eu")
    many = replace(lane, spans=lane.spans * 100)
    history = replace(busy.history, lanes=replace(busy.history.lanes, shown=(many,)))

    page = render_page(replace(busy, history=history))

    assert len(page) < 600_000
