"""The conda recipe and the container file take what the wheel takes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
RECIPE = ROOT / "infra" / "conda" / "recipe.yaml"
CONTAINER = ROOT / "infra" / "container" / "Containerfile"


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return found


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(RECIPE.read_text())
    return found


def packed(requirements: list[str]) -> set[str]:
    return {requirement.replace(" ", "") for requirement in requirements}


def test_recipe_is_of_the_version_that_the_project_has(project: dict[str, Any], recipe: dict[str, Any]) -> None:
    described = project["project"]

    assert recipe["context"] == {"name": described["name"], "version": described["version"]}
    assert recipe["about"]["summary"] == described["description"]
    assert recipe["about"]["license"] == described["license"]


def test_recipe_needs_what_the_wheel_needs(project: dict[str, Any], recipe: dict[str, Any]) -> None:
    python = f"python{project['project']['requires-python']}"

    assert packed(recipe["requirements"]["run"]) == {python, *project["project"]["dependencies"]}
    assert packed(recipe["requirements"]["host"]) == {python, "pip", *project["build-system"]["requires"]}


def test_recipe_has_the_commands_of_the_wheel(project: dict[str, Any], recipe: dict[str, Any]) -> None:
    scripts = [f"{name} = {place}" for name, place in project["project"]["scripts"].items()]

    assert recipe["build"]["python"]["entry_points"] == scripts


def test_image_installs_nothing_but_the_wheel_and_what_its_lock_has() -> None:
    said = CONTAINER.read_text().replace("\\\n", " ")
    installs = re.findall(r"pip install ([^&\n]*)", said)

    assert re.findall(r"(?m)^COPY (.*)", said) == ["requirements-wheel.lock txntable-*.whl /tmp/install/"]
    assert len(installs) == 2
    assert "--require-hashes" in installs[0].split()
    assert "--no-index" in installs[1].split()
    assert not re.findall(r"(?m)^(ADD|RUN (apt|curl|wget))", said)


def test_image_runs_the_command_as_nobody_in_particular() -> None:
    said = CONTAINER.read_text()

    assert re.findall(r"(?m)^USER (.*)", said) == ["10001:10001"]
    assert 'ENTRYPOINT ["txntable"]' in said
