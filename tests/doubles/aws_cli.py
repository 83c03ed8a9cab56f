"""``aws``, as far as the runbook uses it, on boto3: ``s3 sync|cp|rm|ls``, ``s3api`` and ``iam`` by their calls' names.

Run as a program.  What it does not know it refuses, so that a command of the runbook is never taken for done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import boto3  # noqa: TID251  stands for a program of others
import jmespath

_SILENT = {"--quiet", "--only-show-errors", "--recursive", "--execute"}


def place_of(url: str) -> tuple[str, str]:
    """Return bucket and prefix of a URL."""
    assert url.startswith("s3://"), url
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    return bucket, prefix


def keys_below(client: Any, bucket: str, prefix: str) -> list[tuple[str, int]]:
    """Return the objects below a prefix, and their sizes."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [(found["Key"], found["Size"]) for page in pages for found in page.get("Contents", [])]


def sync(client: Any, source: str, target: str, excluded: Sequence[str]) -> None:
    """Copy objects that are not there or of another size; the real one goes by dates, too."""
    (bucket, prefix), (other, below) = place_of(source), place_of(target)
    there = dict(keys_below(client, other, below))
    for key, size in keys_below(client, bucket, prefix):
        name = key.removeprefix(prefix).lstrip("/")
        copy = f"{below}/{name}"
        if there.get(copy) != size and not any(fnmatch(name, each) for each in excluded):
            client.copy({"Bucket": bucket, "Key": key}, other, copy)


def upload(client: Any, folder: str, target: str) -> None:
    """Copy a local folder."""
    bucket, prefix = place_of(target)
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            client.upload_file(str(path), bucket, f"{prefix.rstrip('/')}/{path.relative_to(folder).as_posix()}")


def of_s3(arguments: Sequence[str]) -> None:
    """Do a command of ``aws s3``."""
    command, *rest = arguments
    excluded = [value for flag, value in zip(rest, rest[1:], strict=False) if flag == "--exclude"]
    unknown = [each for each in rest if each.startswith("-") and each not in {*_SILENT, "--exclude"}]
    assert not unknown, f"aws s3: {unknown}"
    words = [each for each in rest if not each.startswith("-") and each not in excluded]
    client = boto3.client("s3")
    if command == "sync":
        sync(client, words[0], words[1], excluded)
    elif command == "cp":
        upload(client, words[0], words[1])
    elif command in {"rm", "ls"}:
        bucket, prefix = place_of(words[0])
        for key, size in keys_below(client, bucket, prefix):
            if command == "rm":
                client.delete_object(Bucket=bucket, Key=key)
            else:
                sys.stdout.write(f"{size} {key}\n")
    else:
        raise AssertionError(f"aws s3 {command}")


def of_service(service: str, arguments: Sequence[str]) -> None:
    """Make a call of a service, and print what ``--query`` picks."""
    operation, *rest = arguments
    given = dict(zip(rest[::2], rest[1::2], strict=True))
    query, _ = given.pop("--query", None), given.pop("--output", None)
    method = operation.replace("-", "_")
    named = {_argument(flag): value for flag, value in given.items()}
    client: Any = boto3.client(service)
    pages = client.get_paginator(method).paginate(**named) if client.can_paginate(method) else [named]
    for page in pages:
        answer: Mapping[str, Any] = page if client.can_paginate(method) else getattr(client, method)(**named)
        # As the real one has them: moments as text.
        plain = json.loads(json.dumps(answer, default=lambda value: getattr(value, "isoformat", value.__str__)()))
        found = jmespath.search(query, plain) if query else plain
        for line in found if isinstance(found, list) else [found]:
            sys.stdout.write("\t".join(map(str, line)) + "\n" if isinstance(line, list) else json.dumps(line) + "\n")


def _argument(flag: str) -> str:
    words = flag.removeprefix("--").split("-")
    return "".join(word.title() for word in words)


def main(arguments: Sequence[str]) -> None:
    """Do what the command line says."""
    service, *rest = arguments
    if service == "s3":
        of_s3(rest)
    else:
        of_service({"s3api": "s3"}.get(service, service), rest)


if __name__ == "__main__":
    main(sys.argv[1:])
