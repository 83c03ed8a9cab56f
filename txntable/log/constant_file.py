"""The one file behind every row that lives in the log only (PROTOCOL.md §3.3).

Markers, state entries and keyed rows need a file, because Delta's rows have one; all they say
is in the partition values.  The bytes are spelled out, not made, so that every version of this
project writes the same object and ``size`` in the log is always right: one row, one column
``_constant INT`` = 1.
"""

from __future__ import annotations

import base64

CONSTANT_FILE = base64.b64decode(
    "UEFSMRUAFRQVFCwVAhUAFQYVBhwAAAACAAAAAgEBAAAAFQQZLDUAGAZzY2hlbWEVAgAVAiUCGAlfY29uc3RhbnQAFgIZHBkcJgAc"
    "FQIZJQYAGRgJX2NvbnN0YW50FQAWAhY6FjomCEkcFQAVABUCADwpBhkmAAIAAAAWOhYCJggWOgAoIHBhcnF1ZXQtY3BwLWFycm93"
    "IHZlcnNpb24gMjYuMC4xGRwcAAAAigAAAFBBUjE="
)
CONSTANT_STATS = '{"numRecords":1}'
