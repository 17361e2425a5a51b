"""The record of what was generated: what `update` and `remove` go by.

`.mplayer/` at the root of a project mirrors it: of `src/acme/layers/my_layer.py` it
holds, in `.mplayer/src/acme/layers/`,

    my_layer.json        what was asked for, and what came of it
    my_layer.module.txt  the module as it was generated
    my_layer.test.txt    the test as it was generated

They belong into version control. No two layers share a file, so branches which each
add a layer merge without a conflict.
"""

from __future__ import annotations

import functools
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from scaffold.errors import MplayerError
from scaffold.spec import Request

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FOLDER = PurePosixPath(".mplayer")
FORMAT = 1
_PARTS = ("module", "test")
# What a text raises that is no record, or is nested too deep for one.
_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError),
)


class Generated(NamedTuple):
    """One generated file: where it is, and the hash of the text that it was given.

    Line endings do not count: version control may change them.
    """

    path: PurePosixPath
    sha256: str


class Export(NamedTuple):
    """The edit of an `__init__.py`, and how to take it back byte for byte.

    `undo` holds (first line, how many to take out, lines to put in), counted from 0 in
    the text that the edit made. It holds as long as that text, whose hash is `sha256`,
    is there; later the export is taken out by what it means.
    """

    path: PurePosixPath
    sha256: str
    undo: tuple[tuple[int, int, tuple[str, ...]], ...]


class Record(NamedTuple):
    """A layer that was generated."""

    request: Request
    version: str
    """Of the mplayer that wrote the texts."""
    module: Generated
    test: Generated
    package: str
    """Dotted prefix of the module where the test imports it."""
    export: Export | None
    created: tuple[PurePosixPath, ...]
    """Folders and `__init__.py` files that came with layers: once empty, they go."""
    key: PurePosixPath
    """The name of its files under `.mplayer/`, without their ending."""

    @property
    def path(self) -> PurePosixPath:
        """Where the record is, relative to the root."""
        return _beside(self.key, ".json")

    def part(self, name: str) -> Generated:
        """Returns the `module` or the `test`."""
        return {"module": self.module, "test": self.test}[name]

    def with_part(self, name: str, generated: Generated) -> Record:
        """Returns the record with another `module` or `test`."""
        if name == "module":
            return self._replace(module=generated)
        return self._replace(test=generated)

    def pristine_path(self, part: str) -> PurePosixPath:
        """Where the text of the `module` or the `test` is kept as it was generated."""
        return _beside(self.key, f".{part}.txt")


def sha256(text: str) -> str:
    """Returns the hash of a text, whatever its line endings."""
    import hashlib

    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()


def record_key(module: PurePosixPath) -> PurePosixPath:
    """Returns the key of the layer whose module is generated at this path."""
    return FOLDER / module.with_suffix("")


def record_texts(record: Record, module: str, test: str) -> dict[PurePosixPath, str]:
    """Returns the three files of a record.

    Args:
        record: The record.
        module: The module as it was generated.
        test: The test as it was generated.
    """
    return {
        record.path: _dumped(record),
        record.pristine_path("module"): module,
        record.pristine_path("test"): test,
    }


def read_records(root: Path) -> tuple[Record, ...]:
    """Returns the records of a project, in the order of their paths.

    Raises:
        MplayerError: If one cannot be read.
    """
    paths = sorted((root / FOLDER).rglob("*.json"))
    return tuple(
        _read(root, PurePosixPath(path.relative_to(root).as_posix())) for path in paths
    )


def read_pristine(root: Path, record: Record, part: str) -> str:
    """Returns the module or the test of a layer as it was generated.

    Raises:
        MplayerError: If it is gone, or is not what the record says.
    """
    path = record.pristine_path(part)
    generated = record.part(part)
    try:
        text = (root / path).read_bytes().decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        text = None
    if text is None or sha256(text) != generated.sha256:
        raise MplayerError(
            f"'{path}' is {'gone' if text is None else 'not what was generated'}, so"
            f" that edits of '{generated.path}' cannot be told from the template's."
            " Restore it from version control, or start anew with --force."
        )
    return text


def find_root(cwd: Path) -> Path:
    """Returns the nearest folder upwards that holds a record.

    Raises:
        MplayerError: If there is none.
    """
    for folder in (cwd, *cwd.parents):
        if (folder / FOLDER).is_dir():
            return folder
    raise MplayerError(
        f"'{cwd}' and the folders above it hold no '{FOLDER}', in which mplayer records"
        " what it generates. Run this in a project where `mplayer new` has written a"
        " layer."
    )


def select(records: Iterable[Record], name: str) -> Record:
    """Returns the record of a layer, by its class or by the path of its module.

    Raises:
        MplayerError: If none or several are meant.
    """
    from scaffold.errors import nearest

    records = tuple(records)
    path = PurePosixPath(name.replace("\\", "/"))
    found = [
        record
        for record in records
        if record.request.name == name or record.module.path == path
    ]
    if len(found) == 1:
        return found[0]
    if found:
        paths = ", ".join(f"'{record.module.path}'" for record in found)
        raise MplayerError(f"{name!r} could be {paths}. Give the path instead.")
    known = [record.request.name for record in records]
    raise MplayerError(
        f"No layer {name!r} is recorded in '{FOLDER}'.{nearest(name, known)}"
        + (f" Those recorded are {', '.join(known)}." if known else "")
    )


def export_hash(text: str) -> str:
    """Returns the hash of a text that was edited: here line endings count."""
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def hunks(before: str, after: str) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """Returns the undo of an edit, as `Export.undo` has it."""
    from difflib import SequenceMatcher

    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    opcodes = SequenceMatcher(None, new, old, autojunk=False).get_opcodes()
    return tuple(
        (i, j - i, tuple(old[k:m])) for tag, i, j, k, m in opcodes if tag != "equal"
    )


def undone(export: Export, text: str) -> str | None:
    """Returns the text before an edit, or None where anything has changed since."""
    if export_hash(text) != export.sha256:
        return None
    lines = text.splitlines(keepends=True)
    for first, count, put_in in reversed(export.undo):
        lines[first : first + count] = put_in
    return "".join(lines)


def _beside(key: PurePosixPath, ending: str) -> PurePosixPath:
    return key.with_name(key.name + ending)


def _dumped(record: Record) -> str:
    import json

    request = record.request._asdict()
    if record.request.dialect == "tf":
        # As in the records of an mplayer that knew no other.
        del request["dialect"]
    table = {
        "format": FORMAT,
        "mplayer": record.version,
        **request,
        **{part: _plain(record.part(part)) for part in _PARTS},
        "package": record.package,
        "export": _plain(record.export) if record.export else None,
        "created": [str(path) for path in record.created],
    }
    return json.dumps(table, indent=2, ensure_ascii=False) + "\n"


def _plain(part: Generated | Export) -> dict[str, Any]:
    return {**part._asdict(), "path": str(part.path)}


def _read(root: Path, path: PurePosixPath) -> Record:
    import json

    try:
        table = json.loads((root / path).read_bytes().decode("utf-8"))
        if table["format"] != FORMAT:
            raise MplayerError(
                f"'{path}' has the format {table['format']!r}, which this mplayer does"
                " not know. Install the newest."
            )
        return _loaded(table, path.with_suffix(""))
    except _UNREADABLE as error:
        raise MplayerError(
            f"'{path}' cannot be read as a record ({type(error).__name__}: {error})."
            " Restore it from version control, or take its three files away: the layer"
            " stays, and mplayer forgets it."
        ) from error


def _loaded(table: dict[str, Any], key: PurePosixPath) -> Record:
    table = {"dialect": "tf", **table}
    request: dict[str, Any] = {name: table[name] for name in Request._fields}
    request["arguments"] = tuple(map(_text, request["arguments"]))
    for name in {*request} - {"arguments"}:
        if request[name] is not None or name in ("name", "options", "dialect"):
            _text(request[name])
    parts = {
        part: Generated(_inside(table[part]["path"]), _text(table[part]["sha256"]))
        for part in _PARTS
    }
    export = table["export"] and Export(
        _inside(table["export"]["path"]),
        _text(table["export"]["sha256"]),
        tuple(
            (int(i), int(n), tuple(map(_text, lines)))
            for i, n, lines in table["export"]["undo"]
        ),
    )
    return Record(
        request=Request(**request),
        version=_text(table["mplayer"]),
        **parts,
        package=_text(table["package"]),
        export=export,
        created=tuple(map(_inside, table["created"])),
        key=key,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


@functools.cache
def _inside(text: str) -> PurePosixPath:
    """A path of a record; one that leads out of the project is no record's."""
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or not path.parts or ":" in text:
        raise ValueError(f"{text!r} does not lie inside the project")
    return path
