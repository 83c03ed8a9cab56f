"""The options of ``read_stream``."""

from __future__ import annotations

import re

import pytest

from txntable.errors import InvalidRequestError
from txntable.spark.scan.stream_options import STREAM_OPTIONS, check_stream_options


def test_options_of_deltas_streams_are_taken_in_any_case_and_those_of_file_systems() -> None:
    check_stream_options({name.upper(): "1" for name in STREAM_OPTIONS} | {"fs.s3a.endpoint": "http://here"})


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("startingOffsets", "startingVersion ('latest': only new records) or startingTimestamp"),
        ("maxOffsetsPerTrigger", "maxFilesPerTrigger or maxBytesPerTrigger"),
        ("startingVerison", "did you mean startingVersion?"),
        ("isolationLevel", "take one of those known unknown=isolationLevel"),
    ],
)
def test_option_that_delta_would_pass_over_is_refused_with_what_is_there_in_its_place(option: str, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=re.escape(said)):
        check_stream_options({option: "latest"})
