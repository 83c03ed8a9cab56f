"""What of the site is made from the code, and where it stands: the one list of it.

Must not know how anything is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tools.documentation import (
    api_reference,
    command_reference,
    configuration_reference,
    error_reference,
    kafka_differences,
    state_tables,
)

GENERATED_PAGES: Mapping[str, Callable[[], str]] = {
    **api_reference.PAGES,
    "reference/command-line.md": command_reference.page,
    "reference/configuration.md": configuration_reference.page,
    "reference/errors.md": error_reference.page,
}
"""Path in the site -> makes the page."""

SECTIONS: Mapping[str, Callable[[], str]] = {
    "differences from Kafka": kafka_differences.section,
    "answers unlike Kafka's": kafka_differences.answers_section,
    "states of a transaction": state_tables.transaction_section,
    "operations on a transaction": state_tables.transaction_operations_section,
    "states of a group": state_tables.group_section,
}
"""Name in a page -> makes the section."""
