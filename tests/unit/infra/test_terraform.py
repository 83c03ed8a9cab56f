"""The Terraform module's own files: its permissions are those of the code, its variables those of the template.

What its expressions come to is compared by ``make terraform``, which has a parser of them.
"""

from __future__ import annotations

import re

from tests.unit.infra.stack import FILE, template
from txntable.infra.terraform_policies import FOLDER, policy_files

MODULE = FILE.parent / "terraform"
_VARIABLE = re.compile(r'^variable "(\w+)" \{\n(.*?)^\}$', re.MULTILINE | re.DOTALL)


def test_files_of_the_policies_are_written_from_the_code() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == policy_files()


def test_variables_are_the_parameters_of_the_template_with_their_defaults() -> None:
    variables = dict(_VARIABLE.findall((MODULE / "variables.tf").read_text(encoding="utf-8")))
    # CloudFormation has a name for each stack.
    variables.pop("name")

    found = {name: default_of(body) for name, body in variables.items()}
    parameters = template()["Parameters"]
    assert found == {snake(name): text_of(one.get("Default")) for name, one in parameters.items()}


def test_variables_say_what_the_parameters_say() -> None:
    variables = dict(_VARIABLE.findall((MODULE / "variables.tf").read_text(encoding="utf-8")))

    for name, parameter in template()["Parameters"].items():
        assert parameter.get("Description", "") in variables[snake(name)], name


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def default_of(body: str) -> str | None:
    found = re.search(r"^  default +=\s(.*)$", body, re.MULTILINE)
    return found and found[1].strip('"')


def text_of(default: object) -> str | None:
    return None if default is None else str(default)
