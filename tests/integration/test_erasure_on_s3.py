"""An erasure on a real S3 API: what a versioned bucket keeps is told, and what may not be asked is said."""

from __future__ import annotations
