"""The engines that are servers: Trino and Spark's Thrift server, each on loopback, started when it is asked and ended.

A server is ready when it says so on its output.  Where something is missing it says what, and is not started.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from threading import Thread, Timer

import pyspark

from tests.engines.setting_up import BUILD, TRINO_VERSION
from txntable.spark.session import SETTINGS

TRINO_JAVA = 24
SECONDS_TO_START = 300
_JAVA_VERSION = re.compile(r'version "(\d+)')
_LAST_LINES = 40


class MissingPartError(Exception):
    """What an engine needs is not on this machine."""


@contextmanager
def trino(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run Trino with the Delta Lake connector, a metastore of files in `folder`, and the local file system."""
    home, java, port = BUILD / "trino", _java_of_trino(), free_port()
    if not (home / "bin" / "launcher").exists():
        raise MissingPartError(f"Trino {TRINO_VERSION} is not in {home}: `make engines` fetches it, with Maven (mvn)")
    for name, text in _trino_files(folder, port).items():
        place = folder / "etc" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    settings = {"JAVA_HOME": str(java), "PATH": f"{java / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    with _running([str(home / "bin" / "launcher"), f"--etc-dir={folder / 'etc'}", "run"], settings, "SERVER STARTED"):
        yield {"port": str(port)}


def _trino_files(folder: Path, port: int) -> dict[str, str]:
    return {
        "node.properties": f"node.environment=tests\nnode.id=tests\nnode.data-dir={folder / 'data'}\n"
        "node.internal-address=127.0.0.1\n",
        "jvm.config": "-Xmx1500M\n-Djdk.attach.allowAttachSelf=true\n--enable-native-access=ALL-UNNAMED\n",
        "config.properties": "coordinator=true\nnode-scheduler.include-coordinator=true\n"
        f"http-server.http.port={port}\ndiscovery.uri=http://127.0.0.1:{port}\n"
        "query.max-memory=500MB\nquery.max-memory-per-node=500MB\n",
        # The last two lines are what our tables need.  Locations are local:/// and a path.
        "catalog/lake.properties": "connector.name=delta_lake\nhive.metastore=file\n"
        f"hive.metastore.catalog.dir=local://{folder / 'metastore'}\n"
        "fs.native-local.enabled=true\nlocal.location=/\n"
        "delta.register-table-procedure.enabled=true\n",
    }


def _java_of_trino() -> Path:
    """The home of a Java that is new enough; none: what to do."""
    named = [os.environ.get(name) for name in ("TRINO_JAVA_HOME", "JAVA_HOME")]
    on_path = shutil.which("java")
    usual = Path("/usr/lib/jvm")
    homes = [Path(name) for name in named if name]
    homes += [Path(on_path).resolve().parents[1]] if on_path else []
    homes += sorted(usual.iterdir()) if usual.is_dir() else []
    for home in homes:
        if (home / "bin" / "java").exists() and _major(home) >= TRINO_JAVA:
            return home
    raise MissingPartError(f"Trino {TRINO_VERSION} needs Java {TRINO_JAVA} or later: set TRINO_JAVA_HOME to its folder")


def _major(home: Path) -> int:
    answer = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=False)
    found = _JAVA_VERSION.search(answer.stderr)
    return int(found[1]) if found else 0


@contextmanager
def thriftserver(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run Spark's Thrift server with a Hive metastore in an embedded Derby database in `folder`."""
    home, port = Path(pyspark.__file__).parent, free_port()
    spark = ".".join(pyspark.__version__.split(".")[:2])
    settings = {
        **SETTINGS,
        "spark.jars.packages": f"io.delta:delta-spark_{spark}_2.13:{version('delta-spark')}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'metastore'};create=true",
    }
    hive = {
        "hive.server2.thrift.port": str(port),
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "hive.server2.authentication": "NOSASL",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command += ["--driver-java-options", f"-Dderby.system.home={folder}"]
    command += ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal"]
    command += [word for name, value in hive.items() for word in ("--hiveconf", f"{name}={value}")]
    with _running(command, {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}, "HiveThriftServer2 started"):
        yield {"port": str(port)}


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _running(command: Sequence[str], settings: Mapping[str, str], ready: str) -> Iterator[None]:
    """Start a server, wait until it says that it is ready, and end it."""
    stack = ExitStack()
    process = stack.enter_context(
        subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    )
    assert process.stdout is not None
    too_late = Timer(SECONDS_TO_START, process.kill)
    too_late.start()
    try:
        last: deque[str] = deque(maxlen=_LAST_LINES)
        for line in process.stdout:
            last.append(line)
            if ready in line:
                break
        else:
            raise AssertionError(f"it ended before it was ready: {''.join(last)}")
        too_late.cancel()
        # A server whose output nobody reads stops at some line.
        drain = Thread(target=deque, args=(process.stdout, 0))
        drain.start()
        stack.callback(drain.join)
        yield
    finally:
        too_late.cancel()
        process.terminate()
        stack.close()
