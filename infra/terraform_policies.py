"""The policies of ``policies.py`` as files of the Terraform module, with ``${bucket}`` and the like in them.

    python -m txntable.infra.terraform_policies

Owns which files there are and how they are laid out; a test holds them against the code.  The module fills in the names
(``templatefile``) and leaves out statements that a warehouse does not need, by their ``Sid``: there is no second text
of any permission.  Must not know what the module does with them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from txntable.infra.policies import Document, Role, WarehousePlace, Writes, bucket_policy, role_policy

FOLDER = Path(__file__).resolve().parent / "terraform" / "policies"
_PLACE = WarehousePlace("${bucket}", "${prefix}", "${partition}", "${kms_key}")


def policy_files() -> Mapping[str, str]:
    """Return the files by name, as they stand in :data:`FOLDER`: one for each role, and ``bucket.json``."""
    documents = {role.value: role_policy(role, _PLACE) for role in Role}
    documents["bucket"] = _every_statement_of_the_bucket()
    return {f"{name}.json": json.dumps(document, indent=2) + "\n" for name, document in documents.items()}


def _every_statement_of_the_bucket() -> Document:
    """Return the bucket's policy with the statements of each :class:`Writes`, once each."""
    documents = [bucket_policy(_PLACE, writes) for writes in Writes]
    statements = {each["Sid"]: each for document in documents for each in document["Statement"]}
    return {**documents[0], "Statement": list(statements.values())}


def main() -> int:
    """Write the files; return the exit code."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in policy_files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
