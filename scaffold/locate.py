"""Where generated files are now: whoever has moved one need not tell mplayer."""

from __future__ import annotations

import functools
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from scaffold.record import read_records

if TYPE_CHECKING:
    from pathlib import Path

    from scaffold.record import Record

# Folders in which no one keeps a layer.
_SKIPPED = frozenset({"node_modules", "build", "dist", "site-packages", "__pycache__"})


class Locator:
    """Finds generated files by what they say; it reads a project at most once."""

    def __init__(self, root: Path) -> None:
        """Reads nothing yet.

        Args:
            root: The project.
        """
        self._root = root

    def places(self, record: Record, part: str) -> tuple[PurePosixPath, ...]:
        """Returns where a layer's `module` or `test` may be.

        That is where the record has it, or else wherever the class is defined, or
        imported by a test, in a file of no other layer; nowhere, if it was deleted.
        """
        path = record.part(part).path
        if (self._root / path).is_file():
            return (path,)
        name = record.request.name
        if part == "module":
            sign = f"class {name}("
            return tuple(p for p, text in self._sources.items() if sign in text)
        sign = f"import {name}\n"
        return tuple(
            path
            for path, text in self._sources.items()
            if path.name.startswith("test_") and sign in text
        )

    @functools.cached_property
    def _sources(self) -> dict[PurePosixPath, str]:
        # What is another layer's own is not this one's, though it be moved.
        taken = {
            record.part(part).path
            for record in read_records(self._root)
            for part in ("module", "test")
        }
        sources = {}
        for file in sorted(self._root.rglob("*.py")):
            path = PurePosixPath(file.relative_to(self._root).as_posix())
            if file.is_file() and path not in taken and self._may_hold_code(path):
                text = file.read_text("utf-8", errors="replace")
                sources[path] = text.replace("\r\n", "\n")
        return sources

    def _may_hold_code(self, path: PurePosixPath) -> bool:
        folders = [self._root / parent for parent in path.parents]
        return not any(
            part.startswith(".") or part in _SKIPPED for part in path.parts
        ) and not any((folder / "pyvenv.cfg").exists() for folder in folders)
