"""``infra/DOLLARS.md`` says what the code computes, and the arithmetic is that of the price lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks import dollars as page
from benchmarks.dollars import DOCUMENT, PRICES, TABLES, break_even, dollars, serverless_a_day, uploads, writers
from benchmarks.peer_requests import SIZES, asked, kept
from tools.documentation.tables import names_of

MIB = 2**20
KINDS = {"PUT", "GET", "HEAD", "LIST", "DELETE", "GLUE"}


@pytest.mark.parametrize("name", TABLES)
def test_document_shows_the_table_as_it_is_computed(name: str) -> None:
    """``python -m benchmarks.dollars`` writes it again."""
    assert f"<!-- table: {name} -->\n{TABLES[name]()}<!-- end -->" in DOCUMENT.read_text()


def test_document_asks_for_each_table_once() -> None:
    assert sorted(names_of(DOCUMENT.read_text())) == sorted(TABLES)


@pytest.mark.parametrize(
    ("requests", "price"),
    [
        ({"PUT": 1000}, 0.005),
        ({"LIST": 1000}, 0.005),
        ({"GET": 1000, "HEAD": 1000}, 0.0008),
        ({"GLUE": 1_000_000}, 1.0),
        ({"DELETE": 1000}, 0.0),
    ],
    ids=str,
)
def test_requests_cost_what_the_lists_say(requests: Mapping[str, float], price: float) -> None:
    assert dollars(requests) == pytest.approx(price)


@pytest.mark.parametrize(
    ("size", "requests"), [(1, 1), (8 * MIB - 1, 1), (8 * MIB, 3), (8 * MIB + 1, 4), (128 * MIB - 1, 18)]
)
def test_upload_takes_a_request_for_each_part_and_two_more(size: int, requests: int) -> None:
    assert uploads(size) == requests


def test_break_even_is_where_both_cost_the_same_in_a_day() -> None:
    rate = break_even(15.12, 27.30)

    assert rate * 86_400 * 27.30 / 1_000_000 == pytest.approx(15.12)
    assert rate == pytest.approx(6.41, abs=0.01)


def test_words_of_the_document_are_those_of_its_tables() -> None:
    ours, delta, iceberg, _ = writers()
    snapshot = (iceberg.metadata_bytes - kept()[1][1].metadata_bytes[0]) / 100

    assert round(break_even(page.BROKERS_A_DAY, 1_000_000 * ours.one)) == 6
    assert ours.one == pytest.approx(delta.one, rel=0.05)
    assert round(snapshot * 1_000_000**2 / 2 / 1e12, -2) == 300


def test_day_of_a_cluster_is_its_hours() -> None:
    assert pytest.approx(3 * 24 * 0.21) == page.BROKERS_A_DAY
    assert serverless_a_day(10) == pytest.approx(24 * (0.75 + 10 * 0.0015))


def test_two_of_three_writes_cross_zones_and_both_ends_pay() -> None:
    assert pytest.approx(13.33, abs=0.01) == 1000 * page.CROSSING


def test_peer_pays_three_commits_for_three_tables_and_ours_less_than_three() -> None:
    ours, *peers = writers()

    assert all(peer.three == pytest.approx(3 * peer.one) for peer in peers)
    assert ours.three < 3 * ours.one


def test_larger_file_differs_by_its_upload_alone() -> None:
    _, found = kept()

    for peer, writer in zip(found, writers()[1:], strict=True):
        for size, requests in peer.large_files.items():
            assert writer.files[size] - writer.one == pytest.approx(dollars(requests) - dollars(peer.data_file))


def test_each_price_says_whose_it_is_and_where_it_was_read() -> None:
    assert all(price.publisher and price.read_in and price.dollars > 0 for price in PRICES)


def test_kept_counts_are_of_known_kinds_and_versions() -> None:
    about, peers = kept()

    assert about["day"]
    assert set(about["versions"]) >= {"deltalake", "pyiceberg", "moto"}
    assert all(set(peer.append) <= KINDS and set(peer.large_files) == set(SIZES) for peer in peers)


def request(method: str, path: str, query: str = "", **more: Any) -> dict[str, Any]:
    return {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, **more}


@pytest.mark.parametrize(
    ("environ", "kind", "is_data"),
    [
        (request("GET", "/b/t/_delta_log/0.json"), "GET", False),
        (request("GET", "/b", "list-type=2&prefix=t"), "LIST", False),
        (request("HEAD", "/b/t/data/0.parquet"), "HEAD", True),
        (request("PUT", "/b/t/part-0.parquet", "partNumber=1&uploadId=a"), "PUT", True),
        (request("POST", "/b/t/part-0.parquet", "uploads"), "PUT", True),
        (request("POST", "/b/t/part-0.parquet", "uploadId=a"), "PUT", True),
        (request("PUT", "/b/t/_delta_log/1.checkpoint.parquet"), "PUT", False),
        (request("POST", "/b", "delete"), "DELETE", False),
        (request("POST", "/", HTTP_X_AMZ_TARGET="AWSGlue.GetTable"), "GLUE", False),
    ],
    ids=lambda value: str(value.get("PATH_INFO")) if isinstance(value, dict) else str(value),
)
def test_request_is_counted_by_its_price(environ: dict[str, Any], kind: str, is_data: bool) -> None:
    seen = asked(environ)

    assert (seen.kind, seen.is_data) == (kind, is_data)


def test_bytes_of_a_request_are_those_of_what_is_put() -> None:
    assert asked(request("PUT", "/b/x", CONTENT_LENGTH="7")).length == 7
    assert asked(request("PUT", "/b/x", CONTENT_LENGTH="99", HTTP_X_AMZ_DECODED_CONTENT_LENGTH="7")).length == 7
    assert asked(request("GET", "/b/x", CONTENT_LENGTH="7")).length == 0
