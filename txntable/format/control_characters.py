"""Characters that are no text: they steer a terminal, turn the order of what is read, or break lines.

Owns which ones: Unicode's controls (C0 with ESC and NUL, DEL, C1), its bidirectional controls, the separators of lines
and paragraphs, and halves of surrogate pairs, which UTF-8 does not have.  Pure.
"""

from __future__ import annotations

import re

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def escaped(text: str, keep: str = "") -> str:
    r"""Return a text in one line that only shows: control characters as Python writes them, ``\x1b``, ``\u202e``.

    Parameters
    ----------
    text : str
        Anything.
    keep : str
        Control characters that stay.
    """
    return CONTROL.sub(lambda found: found[0] if found[0] in keep else _written(found[0]), text)


def escaped_in_json(document: str) -> str:
    r"""Return a JSON text in which control characters stand as ``\u009b``, and means the same.

    Those below a blank are escaped in its strings already; the others of them are line breaks between its parts.
    """
    return CONTROL.sub(lambda found: found[0] if found[0] < " " else f"\\u{ord(found[0]):04x}", document)


def _written(character: str) -> str:
    number = ord(character)
    return _SHORT.get(character) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")
