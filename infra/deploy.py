"""Deploys a warehouse's stack: shows what would change; with ``--execute`` changes it and looks at the result.

    python -m txntable.infra.deploy --stack lake --bucket my-lake
    python -m txntable.infra.deploy --stack lake --bucket my-lake --execute

Exit code 0: shown, or deployed and everything is as it should be; 1: something endangers the warehouse, or is missing;
2: wrong usage.  Credentials, region and profile are boto3's; ``AWS_REGION`` counts, too.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    WaiterError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from txntable.infra.inspection import bucket_exists, lifecycle_dangers, missing_protections
from txntable.infra.policies import BUCKET_NAME, WarehousePlace, Writes, place_of

TEMPLATE = Path(__file__).with_name("warehouse.yaml")
_REMEDIES: Mapping[type[Exception], str] = {
    NoRegionError: "set AWS_REGION, or name a profile that has one by AWS_PROFILE",
    NoCredentialsError: "give boto3 some: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    BotoConnectionError: "check the network, the region's name and what proxies are set",
}
_NO_CHANGES = ("didn't contain changes", "No updates are to be performed")


@dataclass(frozen=True, slots=True)
class Deployment:
    """What to deploy.

    Attributes
    ----------
    stack : str
        Name of the stack.
    place : WarehousePlace
        The warehouse.
    parameters : Mapping of str to str
        Of the template, beside bucket and prefix.
    """

    stack: str
    place: WarehousePlace
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def writes(self) -> Writes:
        """Return what the bucket is to let be written."""
        return Writes(self.parameters.get("Writes", Writes.CHECKED.value))

    def all_parameters(self, before: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the parameters as CloudFormation takes them; what is not said stays, but for a pause."""
        kept = {name: value for name, value in before.items() if name != "Writes"}
        named = {**kept, "BucketName": self.place.bucket, "Prefix": self.place.prefix, **self.parameters}
        return [{"ParameterKey": name, "ParameterValue": value} for name, value in named.items()]


def deploy(session: Any, deployment: Deployment, *, execute: bool) -> int:
    """Show the changes of a deployment, and make them if asked to; return the exit code.

    Parameters
    ----------
    session : boto3.Session
        Where and as whom.
    deployment : Deployment
        What.
    execute : bool
        ``False``: nothing is left behind.
    """
    s3 = session.client("s3")
    place = deployment.place
    endangered = lifecycle_dangers(s3, place) if bucket_exists(s3, place.bucket) else []
    _tell("danger", endangered)
    with _change_set(session.client("cloudformation"), deployment, keep=execute) as changes:
        _tell("change", changes)
    if not execute:
        print("nothing was changed; --execute does it")
        return 1 if endangered else 0
    missing = [*missing_protections(s3, place, deployment.writes), *lifecycle_dangers(s3, place)]
    _tell("missing", missing)
    return 1 if missing else 0


@contextmanager
def _change_set(cloudformation: Any, deployment: Deployment, *, keep: bool) -> Iterator[list[str]]:
    """Give the changes to the block; then execute them, or take the proposal away."""
    stack = _stack(cloudformation, deployment.stack)
    is_new = stack.get("StackStatus") in {None, "REVIEW_IN_PROGRESS"}
    if stack.get("StackStatus") == "ROLLBACK_COMPLETE":
        raise RuntimeError(
            "the stack could not be created before; delete it (aws cloudformation delete-stack), then deploy again "
            f"stack={deployment.stack}"
        )
    before = _parameters(cloudformation, deployment.stack)
    name = f"{deployment.stack}-{int(time.time())}"
    cloudformation.create_change_set(
        StackName=deployment.stack,
        ChangeSetName=name,
        ChangeSetType="CREATE" if is_new else "UPDATE",
        TemplateBody=TEMPLATE.read_text(),
        Parameters=deployment.all_parameters(before),
        Capabilities=["CAPABILITY_IAM"],
    )
    proposal = {"StackName": deployment.stack, "ChangeSetName": name}
    executed = False
    try:
        changes = _changes(cloudformation, proposal)
        yield changes or ["none"]
        if keep and changes:
            executed = True
            _execute(cloudformation, proposal, "stack_create_complete" if is_new else "stack_update_complete")
    finally:
        if not executed:
            cloudformation.delete_change_set(**proposal)
            if is_new and _stack(cloudformation, deployment.stack).get("StackStatus") == "REVIEW_IN_PROGRESS":
                cloudformation.delete_stack(StackName=deployment.stack)


def _execute(cloudformation: Any, proposal: Mapping[str, str], done: str) -> None:
    stack = proposal["StackName"]
    cloudformation.execute_change_set(**proposal)
    try:
        cloudformation.get_waiter(done).wait(StackName=stack)
    except WaiterError as error:
        events = cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
        failed = [event for event in events if str(event.get("ResourceStatus", "")).endswith("_FAILED")]
        # Newest first: the oldest failure is the cause of the others.
        cause = f" {failed[-1]['LogicalResourceId']}: {failed[-1].get('ResourceStatusReason')}" if failed else ""
        raise RuntimeError(f"the stack was not changed as proposed stack={stack}{cause}") from error


def _changes(cloudformation: Any, proposal: Mapping[str, str]) -> list[str]:
    try:
        cloudformation.get_waiter("change_set_create_complete").wait(**proposal)
    except WaiterError as error:
        reason = cloudformation.describe_change_set(**proposal).get("StatusReason", "")
        if any(known in reason for known in _NO_CHANGES):
            return []
        raise RuntimeError(f"the change set could not be made reason={reason}") from error
    found = [change["ResourceChange"] for change in cloudformation.describe_change_set(**proposal)["Changes"]]
    return [_told(change) for change in found]


def _told(change: Mapping[str, Any]) -> str:
    # Replacing a bucket would make another, empty one.
    replaced = " REPLACED" if change.get("Replacement") in {"True", "Conditional"} else ""
    return f"{change['Action']} {change['ResourceType']} {change['LogicalResourceId']}{replaced}"


def _parameters(cloudformation: Any, stack: str) -> dict[str, str]:
    """Return the parameters that a stack has; none, when there is no such stack."""
    return {
        each["ParameterKey"]: each["ParameterValue"] for each in _stack(cloudformation, stack).get("Parameters", ())
    }


def _stack(cloudformation: Any, name: str) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return {}
        raise
    return found


def _tell(kind: str, lines: Sequence[str]) -> None:
    for line in lines:
        print(f"{kind}: {line}")


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m txntable.infra.deploy", description=__doc__.splitlines()[0])
    parser.add_argument("--stack", required=True, help="the stack's name, of your choice: one for each warehouse")
    parser.add_argument("--bucket", required=True, help="the bucket's bare name: my-lake")
    parser.add_argument("--prefix", help="where the warehouse is in the bucket; 'warehouse' unless given")
    parser.add_argument("--kms-key", help="ARN of the key that encrypts the bucket")
    parser.add_argument("--parameter", action="append", default=[], metavar="NAME=VALUE", help="of the template")
    parser.add_argument("--execute", action="store_true", help="change it; without this the changes are shown")
    parsed = parser.parse_args(given)
    if any("=" not in each for each in parsed.parameter):
        parser.error("--parameter: give NAME=VALUE")
    if not BUCKET_NAME.fullmatch(parsed.bucket):
        parser.error(f"--bucket: give its bare name, of a-z, 0-9, . and -, without s3:// and --prefix: {parsed.bucket}")
    return parsed


def main(arguments: Sequence[str] | None = None) -> int:
    """Deploy as the arguments say; return the exit code."""
    given = _arguments(arguments)
    try:
        return _run(given)
    except (RuntimeError, BotoCoreError, ClientError) as error:
        # Of the whole call: the region, the credentials and the endpoint are looked for with the first request.
        remedy = next((f"; {what}" for kind, what in _REMEDIES.items() if isinstance(error, kind)), "")
        print(f"error: {str(error).rstrip('.')}{remedy}", file=sys.stderr)
        return 1


def _run(given: argparse.Namespace) -> int:
    session = boto3.Session()
    if session.region_name is None:
        # Every other SDK, and the command line here, take it from this variable.
        session = boto3.Session(region_name=os.environ.get("AWS_REGION"))
    partition = session.get_partition_for_region(session.region_name) if session.region_name else "aws"
    parameters = dict(each.split("=", 1) for each in given.parameter)
    if given.kms_key:
        parameters["KmsKeyArn"] = given.kms_key
    try:
        prefix = _unmoved(_parameters(session.client("cloudformation"), given.stack), given.bucket, given.prefix)
        place = place_of(f"s3://{given.bucket}/{prefix}", partition=partition, kms_key=given.kms_key)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return deploy(session, Deployment(given.stack, place, parameters), execute=given.execute)


def _unmoved(before: Mapping[str, str], bucket: str, prefix: str | None) -> str:
    """Return the prefix to deploy with: a stack's warehouse stays where it is."""
    there = before.get("Prefix", "warehouse" if prefix is None else prefix)
    if before.get("BucketName", bucket) != bucket or there != (there if prefix is None else prefix):
        raise ValueError(
            "a stack's warehouse does not move; give another stack's name, or leave the prefix out "
            f"bucket={before.get('BucketName')} prefix={there}"
        )
    return there


if __name__ == "__main__":
    sys.exit(main())
