"""Docstrings as Markdown has them: an extension of griffe, which mkdocstrings loads for the reference of the API.

Docstrings here have literals and roles as Sphinx reads them; on a page of Markdown both are code.
"""

from __future__ import annotations

from typing import Any

import griffe

from tools.documentation.tables import as_code


class DocstringRoles(griffe.Extension):
    """Makes roles and literals of each docstring code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that was just loaded.

        Parameters
        ----------
        obj : griffe.Object
            Of a module.
        """
        if obj.docstring is not None:
            obj.docstring.value = as_code(obj.docstring.value)
