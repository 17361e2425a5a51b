"""Where generated files are now: whoever has moved one need not tell mplayer."""

from __future__ import annotations

import functools
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from scaffold.record import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scaffold.record import Record

# Folders in which no one keeps a layer.
_SKIPPED = frozenset({"node_modules", "build", "dist", "site-packages", "__pycache__"})
# What is in a folder that is another project, another work tree of this one, or an
# environment.
_FOREIGN = (".git", ".mplayer", "pyvenv.cfg")


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
        imported by a test, in a file of no other layer; nowhere, if it was deleted. A
        project inside this one is not looked into.
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
        for file in self._python_files():
            path = PurePosixPath(file.relative_to(self._root).as_posix())
            if file.is_file() and path not in taken:
                text = file.read_text("utf-8", errors="replace")
                sources[path] = text.replace("\r\n", "\n")
        return sources

    def _python_files(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self._root):
            here = Path(folder)
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith(".")
                and name not in _SKIPPED
                and not any((here / name / sign).exists() for sign in _FOREIGN)
            )
            yield from (here / name for name in sorted(files) if name.endswith(".py"))
