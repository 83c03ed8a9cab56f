"""Keys that are given as storage options show in no error, no log line, no traceback and no repr of any client."""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

from txntable.cli.connection import Connection
from txntable.cli.main import application
from txntable.cli.output import OutputFormat, output_for
from txntable.errors import TxnTableError
from txntable.storage.object_store import StoreSpec
from txntable.storage.open import open_store
from txntable.testing.moto_server import LockedMotoServer
from txntable.warehouse.warehouse import Warehouse

pytestmark = pytest.mark.s3

SECRET, TOKEN = "SeCrEt-of-a-key", "ToKeN-of-a-session"
NOWHERE = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "retry_timeout": "0"}


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    with LockedMotoServer("secrets") as server:
        yield server.storage_options | {"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}


@pytest.fixture
def shown() -> Iterator[io.StringIO]:
    """Everything that any library logs, down to the last detail."""
    stream = io.StringIO()
    handler, root = logging.StreamHandler(stream), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def is_clean(text: str) -> bool:
    return SECRET not in text and TOKEN not in text


def test_nothing_that_a_user_can_print_shows_the_keys(options: dict[str, str], shown: io.StringIO) -> None:
    warehouse = Warehouse.create("s3://secrets/one", options)
    warehouse.admin().create_topic("t")
    producer = warehouse.producer("etl")
    producer.init_transactions()
    with producer.transaction() as txn:
        txn.send("t", value=b"x")
    with warehouse.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        consumer.poll(timeout_ms=100)
        snapshot = warehouse.snapshot()
        things = [warehouse, warehouse.store, warehouse.store.spec, warehouse.context, warehouse.settings()]
        things += [warehouse.admin(), producer, txn, consumer, snapshot, warehouse.topic_log("t").segments]
        things += [Connection("s3://secrets/one", dict(options), output_for(OutputFormat.JSON)), warehouse.identity]

        assert [thing for thing in things if not is_clean(f"{thing!r} {thing}")] == []
    assert is_clean(shown.getvalue())


def deep(error: BaseException) -> str:
    """Return all that can be shown of an error: its causes, notes, facts, and the locals are not among them."""
    return f"{error!r} {error} {getattr(error, 'facts', '')} {''.join(traceback.format_exception(error))}"


@pytest.mark.parametrize(
    "fails",
    [
        lambda options: Warehouse.open("s3://secrets/none", options),
        lambda options: Warehouse.open("s3://no-such-bucket/x", options),
        lambda options: Warehouse.create("s3://secrets/x", options | NOWHERE),
        lambda options: Warehouse.open("s3://secrets/x", options | {"aws_secret_access_key": SECRET}),
        lambda options: Warehouse.open("s3://secrets/x", options | {"AWS_SECRET_ACCESS_KEYS": SECRET}),
        lambda options: Warehouse.open("s3://secrets/x", options | {"retry_timeout": SECRET}),
        lambda options: Warehouse.open("s3://secrets/x", options | {"timeout": SECRET}),
        lambda options: Warehouse.open("gs://secrets/x", {"google_service_account_key": SECRET}),
        lambda options: Warehouse.open("az://secrets/x", {"azure_storage_account_key": SECRET}),
        lambda options: Warehouse.open("a-folder", options),
        lambda options: Warehouse.open(f"s3://key:{SECRET}@secrets/x", {}),
        lambda options: Warehouse.open(f"s3://key:{TOKEN}/{SECRET}@secrets/x", {}),
        lambda options: Warehouse.open(f"az://container/x?sig={SECRET}", {}),
        lambda options: Warehouse.open(f"s3://secrets/x#{SECRET}", options),
    ],
)
def test_error_shows_no_key(
    fails: Callable[[dict[str, str]], object], options: dict[str, str], shown: io.StringIO
) -> None:
    with pytest.raises(TxnTableError) as failure:
        fails(options)

    assert is_clean(deep(failure.value))
    assert is_clean(shown.getvalue())


@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        (["topics", "list"], {}),
        (["topics", "describe", "none"], {}),
        (["warehouse", "describe"], NOWHERE),
        (["warehouse", "create"], {"AWS_SECRET_ACCESS_KEYS": SECRET}),
        (["produce", "none", "--file", "/none"], {}),
        (["transactions", "abort", "none", "--execute"], {}),
        (["topics", "list", "--storage-option", SECRET], {}),
        (["topics", "list", "--storage-option", f"={SECRET}"], {}),
    ],
)
def test_command_line_shows_no_key(
    arguments: list[str], more: dict[str, str], options: dict[str, str], shown: io.StringIO
) -> None:
    Warehouse.create("s3://secrets/cli", options, exist_ok=True)
    given = [f"--storage-option={name}={value}" for name, value in {**options, **more}.items()]

    run = CliRunner().invoke(application, ["--warehouse", "s3://secrets/cli", *given, *arguments])

    raised = "" if run.exception is None else deep(run.exception)
    assert is_clean(run.output)
    assert is_clean(raised)
    assert is_clean(shown.getvalue())


@pytest.mark.parametrize("url", ["abfss://container@account.dfs.core.windows.net/x", "s3://bucket/with@and:colon"])
def test_url_with_a_container_or_an_odd_prefix_is_no_secret(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"account_name": "a", "account_key": "eA=="} if "abfss" in url else {"access_key_id": "k"}
    keys |= {} if "abfss" in url else {"secret_access_key": "s", "region": "us-east-1"}

    assert open_store(StoreSpec(url, keys)).spec.url == url
