"""``aws``, as far as the runbook uses it, on boto3: ``s3 sync|cp|rm|ls``, ``s3api`` and ``iam`` by their calls' names.

Run as a program.  What it does not know it refuses, so that a command of the runbook is never taken for done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any

import boto3  # noqa: TID251  stands for a program of others
import jmespath

_SILENT = {"--quiet", "--only-show-errors", "--recursive", "--execute"}
# One server has the buckets of all regions.
_WITH_VALUE = {"--exclude", "--source-region", "--region"}


def place_of(url: str) -> tuple[str, str]:
    """Return bucket and prefix of a URL."""
    assert url.startswith("s3://"), url
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    return bucket, prefix


def keys_below(client: Any, bucket: str, prefix: str) -> list[tuple[str, int]]:
    """Return the objects below a prefix, and their sizes."""
    return [(name, found["Size"]) for name, found in _listed(client, bucket, prefix).items()]


def _listed(client: Any, bucket: str, prefix: str) -> dict[str, Any]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {found["Key"]: found for page in pages for found in page.get("Contents", [])}


def sync(client: Any, source: str, target: str, excluded: Sequence[str], *, deletes: bool) -> None:
    """Copy objects that are not there, of another size or newer; delete what the source does not have, if told so."""
    (bucket, prefix), (other, below) = place_of(source), place_of(target)
    there, copies = _listed(client, other, below), set[str]()
    for key, found in _listed(client, bucket, prefix).items():
        name = key.removeprefix(prefix).lstrip("/")
        copy = f"{below}/{name}"
        copies.add(copy)
        old = there.get(copy)
        same = old is not None and old["Size"] == found["Size"] and old["LastModified"] >= found["LastModified"]
        if not same and not any(fnmatch(name, each) for each in excluded):
            client.copy({"Bucket": bucket, "Key": key}, other, copy)
    for key in sorted(there.keys() - copies) if deletes else ():
        client.delete_object(Bucket=other, Key=key)


def upload(client: Any, folder: str, target: str) -> None:
    """Copy a local folder."""
    bucket, prefix = place_of(target)
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            client.upload_file(str(path), bucket, f"{prefix.rstrip('/')}/{path.relative_to(folder).as_posix()}")


def of_s3(arguments: Sequence[str]) -> None:
    """Do a command of ``aws s3``."""
    command, *rest = arguments
    given = [(flag, value) for flag, value in pairwise(rest) if flag in _WITH_VALUE]
    excluded = [value for flag, value in given if flag == "--exclude"]
    unknown = [each for each in rest if each.startswith("-") and each not in {*_SILENT, *_WITH_VALUE, "--delete"}]
    assert not unknown, f"aws s3: {unknown}"
    values = {value for _, value in given}
    words = [each for each in rest if not each.startswith("-") and each not in values]
    client = boto3.client("s3")
    if command == "sync":
        sync(client, words[0], words[1], excluded, deletes="--delete" in rest)
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
