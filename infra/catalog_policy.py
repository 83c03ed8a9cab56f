"""What ``txntable catalog sync --glue`` may do in AWS Glue, as an IAM policy document; beside a reader's policy.

Pure.  Owns the actions, and that tables are changed in one database, below one prefix of names.  Which of these tables
were registered by us IAM cannot tell: the job decides that, and a prefix, or a database, of its own makes sure.
Must not know how policies get to AWS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from txntable.infra.policies import Document

_NAME = re.compile(r"[a-z0-9_]+")
_PREFIX = re.compile(r"[a-z0-9_]*")
_PART = re.compile(r"[a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class GlueDatabase:
    """Where tables are registered.

    Attributes
    ----------
    database : str
        The database's name.
    region : str
        As ``eu-west-1``.
    account : str
        The catalog's, which is an account's.
    prefix : str
        Of the tables' names.
    partition : str
        ``aws``, ``aws-cn``, ``aws-us-gov``.

    Raises
    ------
    ValueError
        A part of it would mean something else in a policy, as ``*`` does.
    """

    database: str
    region: str
    account: str
    prefix: str = ""
    partition: str = "aws"

    def __post_init__(self) -> None:
        parts = (self.region, self.account, self.partition)
        if not (_NAME.fullmatch(self.database) and _PREFIX.fullmatch(self.prefix) and all(map(_PART.fullmatch, parts))):
            raise ValueError(f"this cannot be put into a policy; give a plain name database={self}")

    def arn(self, resource: str) -> str:
        """Return the ARN of a resource of Glue's."""
        return f"arn:{self.partition}:glue:{self.region}:{self.account}:{resource}"


def catalog_policy(place: GlueDatabase) -> Document:
    """Return the policy of who keeps a database's tables as a warehouse's topics are.

    Parameters
    ----------
    place : GlueDatabase
        Where.

    Notes
    -----
    Glue asks for the catalog and the database with each action on a table.  What is listed is the whole database, so
    that a name that is taken is seen.
    """
    above = [place.arn("catalog"), place.arn(f"database/{place.database}")]
    statements = [
        {
            "Sid": "Look",
            "Effect": "Allow",
            "Action": ["glue:GetTable", "glue:GetTables"],
            "Resource": [*above, place.arn(f"table/{place.database}/*")],
        },
        {
            "Sid": "Register",
            "Effect": "Allow",
            "Action": ["glue:CreateTable", "glue:UpdateTable", "glue:DeleteTable"],
            "Resource": [*above, place.arn(f"table/{place.database}/{place.prefix}*")],
        },
    ]
    return {"Version": "2012-10-17", "Statement": statements}
