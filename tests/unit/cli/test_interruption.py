"""Ctrl-C and SIGTERM at any moment of a command: one line, exit code 130 or 143, no trace.

Real processes.  A ``sitecustomize`` in front of their path sends the signal to its own process: when a module is asked
for the first time, at the n-th file of the warehouse that is opened, or at the interpreter's end.
"""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Call, until_the_other_side_ends
from txntable.cli import extension, interruption
from txntable.warehouse.warehouse import Warehouse

ROOT = Path(__file__).parents[3]
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

SENDER = """
import atexit, os, sys
what, where = os.environ["SIGNAL_AT"].split(":", 1)
left = [int(where) if what == "open" else 1]

def send():
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == where:
            send()

def on_event(event, arguments):
    if event == "open" and os.environ["WATCHED"] in str(arguments[0]):
        send()

if what == "import":
    sys.meta_path.insert(0, Finder())
elif what == "open":
    sys.addaudithook(on_event)
else:
    atexit.register(send)
"""


@pytest.fixture(scope="module")
def sender(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(SENDER)
    return folder


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A warehouse with something of everything."""
    warehouse = Warehouse.create(str(tmp_path_factory.mktemp("lake") / "warehouse"), durability="page-cache")
    warehouse.admin().create_topic("orders", partitions=2)
    with warehouse.producer() as plain:
        for number in range(20):
            plain.send("orders", value=b"%d" % number, partition=number % 2)
    producer = warehouse.producer("etl")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", value=b"open")
    producer.flush()
    with warehouse.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        consumer.poll()
    return warehouse.url


def ended(sender: Path, url: str, number: signal.Signals, at: str, *arguments: str) -> None:
    """Run a command that gets the signal; check that it has ended as it should."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(sender), str(ROOT)]),
        "SIGNAL_AT": at,
        "SIGNAL": str(int(number)),
        "WATCHED": url,
        "TXNTABLE_WAREHOUSE": url,
    }
    result = subprocess.run(
        [sys.executable, "-m", "txntable.jobs.command", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        input="line\n" * 3,
        check=False,
    )
    assert result.returncode == 128 + number, (arguments, at, result.stderr)
    (line,) = result.stderr.splitlines()
    assert line.split(":")[0] == WORDS[number]


@pytest.mark.parametrize("module", ["txntable.cli.main", "pyarrow.lib", "numpy", "typer", "txntable.consumer.consumer"])
def test_signal_while_libraries_are_imported_is_one_line(sender: Path, url: str, module: str) -> None:
    # Of a client that is made: an admin brings the others.
    ended(sender, url, signal.SIGINT, f"import:{module}", "groups", "list")


def test_signal_while_a_command_of_another_package_is_imported_is_one_line(sender: Path, url: str) -> None:
    ended(sender, url, signal.SIGTERM, "import:txntable.compaction.compactor", "compact", "--once")


def test_signal_when_the_command_is_over_is_one_line(sender: Path, url: str) -> None:
    ended(sender, url, signal.SIGINT, "exit:", "topics", "list")


COMMANDS = [
    ("warehouse", "describe"),
    ("warehouse", "fence-all", "--execute"),
    ("topics", "list"),
    ("topics", "create", "fresh"),
    ("topics", "describe", "orders"),
    ("topics", "alter", "orders", "--partitions", "3"),
    ("produce", "orders"),
    ("produce", "orders", "--transactional-id", "lines", "--batch-id", "run-1"),
    ("consume", "orders"),
    ("consume", "orders", "--group", "h", "--follow", "--from-beginning"),
    ("offsets", "list", "orders"),
    ("groups", "describe", "--group", "g"),
    ("groups", "delete", "--group", "g", "--execute"),
    ("snapshot",),
    ("transactions", "list"),
    ("transactions", "run"),
    ("transactions", "run", "--once"),
    ("check",),
    ("compact", "--once"),
    ("vacuum",),
]


@pytest.mark.parametrize(
    "arguments",
    # Each starts a process; a build takes every third command.
    [
        pytest.param(each, id=" ".join(each), marks=[pytest.mark.nightly] if number % 3 else [])
        for number, each in enumerate(COMMANDS)
    ],
)
def test_signal_at_a_request_of_any_command_is_one_line(sender: Path, url: str, arguments: tuple[str, ...]) -> None:
    place = COMMANDS.index(arguments)

    ended(sender, url, list(WORDS)[place % 2], f"open:{1 + place % 4}", *arguments)


@pytest.fixture
def silent_store() -> Iterator[socket.socket]:
    """Takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


# A command that watches for signals as ever, but for how long the first one waits for the main thread.
PATIENT = (
    "from txntable.cli import interruption; interruption.PATIENCE_S = {}; "
    "from txntable.jobs.command import main; main()"
)


@pytest.mark.parametrize(
    ("command", "signals", "patience_s", "told"),
    [
        # Waits for several requests at once, of which an interrupt takes leave, however slow the machine is.
        pytest.param(["topics", "list"], 1, 60, [], id="several requests"),
        # Waits in the library for a single one, and Python runs no handler.
        pytest.param(["warehouse", "create"], 1, interruption.PATIENCE_S, [b"at", b"once"], id="one request"),
        pytest.param(["warehouse", "create"], 2, interruption.PATIENCE_S, [b"at", b"once"], id="two signals"),
    ],
)
def test_store_that_does_not_answer_keeps_no_command_from_its_end(
    silent_store: socket.socket, command: list[str], signals: int, patience_s: float, told: list[bytes]
) -> None:
    address = "http://{}:{}".format(*silent_store.getsockname())
    options = [f"aws_endpoint={address}", "aws_allow_http=true", "aws_region=eu-central-1"]
    options += ["aws_access_key_id=key", "aws_secret_access_key=secret"]
    arguments = [*command, "--warehouse", "s3://bucket/lake"]
    arguments += [word for option in options for word in ("--storage-option", option)]

    process = subprocess.Popen(
        [sys.executable, "-c", PATIENT.format(patience_s), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    connection, _ = silent_store.accept()
    assert connection.recv(1)
    process.send_signal(signal.SIGINT)
    if signals == 2:
        process.send_signal(signal.SIGTERM)
    # The request is not answered, and has not ended by itself, when the process does.
    out, said = process.communicate(timeout=55)
    connection.close()

    # Of two signals that come together either may be taken for the second.
    word, *more = said.split()
    assert (out, word in {b"interrupted", b"terminated"}, more) == (b"", True, told)
    assert process.returncode in (130, 143)


# A thread that goes on when the main thread enters a call that lets others run, which is no earlier with this interval.
WHEN_IT_SLEEPS = """
import ctypes, os, select, signal, sys, threading
from txntable.cli import interruption, progress, watch
asleep = threading.Event()
def when_it_sleeps(act):
    threading.Thread(target=lambda: asleep.wait() and act(), daemon=True).start()
def sleep(call):
    sys.setswitchinterval(1_000)
    asleep.set()
    call()
"""


@pytest.mark.parametrize("call", ["select.select([], [], [], 50)", "threading.Event().wait(50)"])
def test_signal_that_comes_just_before_a_call_that_sleeps_ends_it(call: str) -> None:
    # Taken by another thread: as little as then does it end the call.
    code = WHEN_IT_SLEEPS + (
        "interruption.PATIENCE_S = 40\n"
        "when_it_sleeps(lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT))\n"
        "with interruption.watched(), interruption.interruptible():\n"
        f"    try: sleep(lambda: {call})\n"
        "    except KeyboardInterrupt: print('raised')\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)

    assert (result.stdout, result.stderr, result.returncode) == ("raised\n", "", 0)


# What does not come back: the main thread takes no signal, and sleeps in C.
STUCK = (
    WHEN_IT_SLEEPS
    + """
from txntable.jobs.command import main
interruption.PATIENCE_S = 0
def stuck(*look):
    when_it_sleeps(lambda: os.kill(os.getpid(), signal.SIGINT))
    signal.pthread_sigmask(signal.SIG_BLOCK, [*interruption.SIGNALS, signal.SIGURG])
    sleep(ctypes.CDLL(None).pause)
"""
)
ON_THE_SCREEN = "watch._look = stuck; main()"
IN_A_LINE = (
    "with interruption.watched(), interruption.interruptible(), progress.{}('work'): os.write(2, b'seen'); stuck()"
)


@pytest.mark.parametrize(
    ("work", "done", "undone"),
    [
        pytest.param(ON_THE_SCREEN, b"\x1b[?1049h", b"\x1b[?1049l\x1b[?25h", id="watch"),
        pytest.param(IN_A_LINE.format("progressing"), b"seen", b"\r\x1b[2K\x1b[?25h", id="progressing"),
        pytest.param(IN_A_LINE.format("waiting"), b"seen", b"\r\x1b[2K\x1b[?25h", id="waiting"),
    ],
)
def test_terminal_is_given_back_when_the_process_ends_at_once(url: str, work: str, done: bytes, undone: bytes) -> None:
    child, terminal = pty.fork()
    if child == 0:
        environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT), "TXNTABLE_WAREHOUSE": url}
        os.execve(sys.executable, [sys.executable, "-c", STUCK + work, "watch"], environment)

    shown = until_the_other_side_ends(terminal)
    _, status = os.waitpid(child, 0)
    local = termios.tcgetattr(terminal)[3]
    os.close(terminal)

    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGINT
    assert b"\x1b[?25l" in shown
    assert done in shown
    assert undone in shown
    assert b"interrupted at once" in shown
    assert local & termios.ECHO
    assert local & termios.ICANON


def test_answer_that_nobody_reads_leaves_no_trace(url: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "txntable.jobs.command", "--warehouse", url, "topics", "list"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()

    assert process.stderr.read() == b""
    assert process.wait() in (0, 1)
    process.stderr.close()


def test_interruption_that_python_can_not_raise_is_raised_again_and_not_told() -> None:
    code = (
        "from txntable.cli.interruption import *\n"
        "class Odd:\n"
        "    def __del__(self): raise KeyboardInterrupt\n"
        "with watched(), interruptible():\n"
        "    try:\n"
        "        Odd()\n"
        "        for _ in range(10**8): pass\n"
        "    except KeyboardInterrupt: print('raised')\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)

    assert (result.stdout, result.stderr, result.returncode) == ("raised\n", "", 0)


def test_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruption.interruptible():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("source", ["import no_such_module", "1 / 0", "raise SystemExit(3)", "command = 5", "def ("])
def test_entry_point_that_does_not_load_breaks_its_own_command_only(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str
) -> None:
    (tmp_path / "broken_plugin.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "broken_plugin", raising=False)
    point = EntryPoint("spin", "broken_plugin:command", extension.GROUP)
    monkeypatch.setattr(extension, "entry_points", lambda **chosen: EntryPoints([point]).select(**chosen))

    help_shown, listed, result = call("--help"), call("topics", "list"), call("spin", "--fast", "x")

    assert (help_shown.exit_code, listed.exit_code, result.exit_code) == (0, 0, 1)
    assert "spin" in help_shown.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: MISSING_DEPENDENCY `txntable spin` cannot be loaded")
