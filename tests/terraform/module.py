"""The Terraform module as it would be applied: its expressions evaluated, with the names that AWS would have given.

Owns what stands in for AWS: the account, and the ARNs of what is made.  They are the same as in the tests of the
CloudFormation template, so that both can be compared.  Owns no expectation.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.unit.infra.test_template import VALUES

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "infra/terraform"
PYTHON = ROOT / "build/terraform/bin/python"
GIVEN = {
    "name": VALUES["AWS::StackName"],
    "bucket_name": VALUES["BucketName"],
    "prefix": VALUES["Prefix"],
    "pipeline_config": VALUES["PipelineConfig"],
    "glue_database": VALUES["GlueDatabase"],
    "table_prefix": VALUES["TablePrefix"],
}
_JOB_ROLES = (
    'tomap({pipeline = "PipelineJob-role", maintenance = "MaintenanceJob-role", '
    'verification = "VerificationJob-role", catalog = "CatalogJob-role"})'
)
_FILLED = (
    r'replace(replace(replace(replace(file(\1), "$${partition}", \2.partition), "$${bucket}", \2.bucket), '
    r'"$${prefix}", \2.prefix), "$${kms_key}", \2.kms_key)'
)
_FILLED_FOR_GLUE = (
    r'replace(replace(replace(replace(replace(file(\1), "$${partition}", \2.partition), "$${region}", \2.region), '
    r'"$${account}", \2.account), "$${database}", \2.database), "$${prefix}", \2.prefix)'
)
_STAND_INS = (
    (r'^data "aws_\w+" "current" {}$', ""),
    (r"data\.aws_partition\.current\.partition", '"aws"'),
    (r"data\.aws_region\.current\.id", f'"{VALUES["AWS::Region"]}"'),
    (r"data\.aws_caller_identity\.current\.account_id", f'"{VALUES["AWS::AccountId"]}"'),
    (r"aws_iam_role\.job\[(.+?)\]\.arn", _JOB_ROLES + r"[\1]"),
    (r"aws_iam_role\.scheduler\.arn", '"Scheduler-role"'),
    (r"aws_emrserverless_application\.jobs\[0\]\.id", f'"{VALUES["Application.ApplicationId"]}"'),
    (r"aws_cloudwatch_log_group\.jobs\.name", f'"{VALUES["JobLogs"]}"'),
    # The parser knows no templatefile.
    (r"templatefile\((\"[^\"]+/catalog\.json\"), ([\w.]+)\)", _FILLED_FOR_GLUE),
    (r"templatefile\((\"[^\"]+\"), ([\w.]+)\)", _FILLED),
)
_EVALUATE = """
import json, sys, tfparse
json.dump(tfparse.load_from_path(".", stop_on_hcl_error=True, vars_paths=["terraform.tfvars"]), sys.stdout)
"""


def stood_in(text: str) -> str:
    """Return a file of the module with what AWS would say written into it."""
    for pattern, said in _STAND_INS:
        text = re.sub(pattern, said, text, flags=re.MULTILINE)
    return text


def without_resources(folder: Path, names: Iterable[str], variables: Mapping[str, object]) -> None:
    """Write the module into a folder, with what it decides in place of what it makes.

    Parameters
    ----------
    folder : Path
        Where to.
    names : iterable of str
        The locals that become outputs.
    variables : Mapping of str to object
        Beside :data:`GIVEN`.
    """
    _write(folder, variables)
    (folder / "versions.tf").unlink()
    for path in folder.glob("*.tf"):
        path.write_text(re.sub(r"^(resource|output) .*?^}$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL))
    shown = "".join(f'output "{name}" {{\n  value = local.{name}\n}}\n' for name in names)
    (folder / "outputs.tf").write_text(shown)


def _write(folder: Path, variables: Mapping[str, object]) -> None:
    for path in MODULE.rglob("*"):
        if path.is_file():
            copy = folder / path.relative_to(MODULE)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(stood_in(path.read_text()) if path.suffix == ".tf" else path.read_text())
    given = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {**GIVEN, **variables}.items())
    (folder / "terraform.tfvars").write_text(given)


def resources(kind: str, **variables: object) -> Mapping[str, Any]:
    """Return the resources of a kind by their address, with these variables beside :data:`GIVEN`."""
    found = _evaluated(json.dumps(variables))
    return {one["__tfmeta"]["path"].removeprefix(f"{kind}."): _plain(one) for one in found.get(kind, [])}


def kinds(**variables: object) -> Mapping[str, int]:
    """Return how many resources of each kind there are."""
    found = _evaluated(json.dumps(variables))
    return {kind: len(those) for kind, those in found.items() if kind.startswith("aws_")}


@lru_cache
def _evaluated(variables: str) -> dict[str, Any]:
    assert PYTHON.exists(), f"{PYTHON.relative_to(ROOT)} is not there: run make terraform"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, json.loads(variables))
        done = subprocess.run([PYTHON, "-c", _EVALUATE], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def _plain(value: Any) -> Any:
    """Return a resource without what the parser adds to it and to its blocks."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    # The parser gives each resource and block an id of its own; a rule's is text of the module.
    own = {"__tfmeta", *(("id",) if re.fullmatch(r"[0-9a-f-]{36}", str(value.get("id"))) else ())}
    return {key: _plain(each) for key, each in value.items() if key not in own}
