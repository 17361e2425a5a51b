"""texts + what is on disk -> plan: what would be written, before anything is."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple

from scaffold.errors import MplayerError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

Status = Literal[
    "create", "update", "identical", "conflict", "merge", "marked", "delete"
]

JSON_VERSION = 1
# Other commands than `new` come to these messages too.
_ELSEWHERE = ": `mplayer new` takes --layer-dir and --test-dir."


class Change(NamedTuple):
    """One file: what it holds, and what it shall hold."""

    path: PurePosixPath
    before: bytes | None
    """None where there is no file yet."""
    after: bytes | None
    """None where the file shall go."""
    replaceable: bool = False
    """Whether what is there may be replaced, or go: an edit, or it was forced."""
    merged: Literal["merge", "marked"] | None = None
    """Whether the user's edits are in `after`, and whether conflicts are marked."""

    @property
    def status(self) -> Status:
        """What publishing the change means."""
        if self.before == self.after:
            return "identical"
        if self.before is None:
            return "create"
        if self.merged:
            return self.merged
        if not self.replaceable:
            return "conflict"
        return "delete" if self.after is None else "update"


class Merged(NamedTuple):
    """A file of the user's with a new version of the template in it."""

    text: str
    conflicts: bool
    """Whether it holds conflict markers, so that it cannot be Python yet."""


class Plan(NamedTuple):
    """All changes of one command, relative to `root`."""

    root: Path
    changes: tuple[Change, ...]
    folders: tuple[PurePosixPath, ...] = ()
    """Folders that go, if they are empty afterwards."""

    @property
    def conflicts(self) -> tuple[Change, ...]:
        """The files that exist with other contents and were not forced."""
        return tuple(c for c in self.changes if c.status == "conflict")

    def diff(self) -> str:
        """Returns the plan as a patch, conflicts included; `git apply` takes it."""
        return "".join(_diff(c) for c in self.changes if c.path.suffix != ".pyc")

    def as_json(self) -> dict[str, object]:
        """Returns the plan for machines; new keys may come, these stay."""
        return {
            "version": JSON_VERSION,
            "root": str(self.root),
            "files": [
                {"path": str(change.path), "status": change.status}
                for change in self.changes
            ],
        }


def make_plan(
    root: Path,
    texts: Mapping[PurePosixPath, str],
    edits: Mapping[PurePosixPath, str],
    *,
    force: bool = False,
    merged: Mapping[PurePosixPath, Merged] | None = None,
    removed: Mapping[PurePosixPath, bool] | None = None,
    folders: Iterable[PurePosixPath] = (),
    proven: Collection[PurePosixPath] = (),
    seen: Mapping[PurePosixPath, bytes | None] | None = None,
) -> Plan:
    """Compares texts with what is on disk, and checks that they can be written.

    Args:
        root: The folder that holds all files.
        texts: New files. One that exists with other contents is a conflict.
        edits: New contents of files that the caller has read, or of missing ones.
        force: Whether conflicts are updates.
        merged: Files of the user's that gain a new version of their template.
        removed: Files that go, and whether they may: one that may not is a conflict.
        folders: Folders that go, if they are empty afterwards.
        proven: Modules that are known to parse, so that none has to wait for it.
        seen: What the caller has read, and its edits rest on.

    Returns:
        The plan, in the order of these arguments.

    Raises:
        MplayerError: If a path leaves `root`, something other than a file or a folder
            is in its way, another file would shadow it or be shadowed, a module does
            not parse, or a file is no longer what the caller has seen.
    """
    merged, removed, folders = merged or {}, removed or {}, tuple(folders)
    written = (*texts, *merged, *edits)
    for path in (*written, *removed, *folders):
        _require_contained(root, path)
    listing = _Listing(root, written)
    for path in written:
        listing.require_free(path)
    for path, text in (*texts.items(), *edits.items()):
        if path.suffix == ".py" and path not in proven:
            _require_python(path, _encoded(path, text))
    changes = [
        *(_change(root, path, text, force) for path, text in texts.items()),
        *(_merge(root, path, merge) for path, merge in merged.items()),
        *(_change(root, path, text, True) for path, text in edits.items()),
        *(
            Change(path, _read(root, path), None, force or may_go)
            for path, may_go in removed.items()
        ),
    ]
    for change in changes:
        if seen and change.path in seen and change.before != seen[change.path]:
            raise changed_meanwhile(change.path)
    return Plan(root, tuple(changes), folders)


def changed_meanwhile(path: PurePosixPath) -> MplayerError:
    """Returns the error of a file that someone else has changed since it was read."""
    return MplayerError(
        f"'{path}' was changed by someone else meanwhile. Nothing was written: run the"
        " command again."
    )


def _change(root: Path, path: PurePosixPath, text: str, replaceable: bool) -> Change:
    return Change(path, _read(root, path), _encoded(path, text), replaceable)


def _merge(root: Path, path: PurePosixPath, merge: Merged) -> Change:
    # The user's part of it need be no Python.
    after = _encoded(path, merge.text)
    merged: Literal["merge", "marked"] = "marked" if merge.conflicts else "merge"
    return Change(path, _read(root, path), after, merged=merged)


@contextlib.contextmanager
def os_errors_of(path: object) -> Iterator[None]:
    """Turns what the system refuses into an error that names `path`.

    Args:
        path: The file that the user knows, not a temporary one.

    Yields:
        Nothing.

    Raises:
        MplayerError: In place of an `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise MplayerError(
            f"Cannot write '{path}': {error.strerror or error}. Mend that, or choose"
            f" another folder{_ELSEWHERE}"
        ) from error


def _require_contained(root: Path, path: PurePosixPath) -> None:
    native = Path(path)  # so that Windows sees its own drives and separators
    if not native.parts or native.anchor or ".." in native.parts or "\0" in str(path):
        raise MplayerError(
            f"'{path}' does not lie inside '{root}'. Choose a folder there with"
            " --layer-dir and --test-dir."
        )


class _Listing:
    """The names on disk and in the plan, each folder read once."""

    def __init__(self, root: Path, paths: Iterable[PurePosixPath]) -> None:
        self._root = root
        self._folders: dict[PurePosixPath, frozenset[str]] = {}
        files: dict[str, PurePosixPath] = {}
        folders: dict[PurePosixPath, str] = {}
        for path in paths:
            # Links and letter case can make two paths one file.
            if path.parent not in folders:
                folders[path.parent] = os.path.realpath(root / path.parent)
            where = os.path.join(folders[path.parent], path.name)  # noqa: PTH118 -- quicker
            real = os.path.realpath(where) if os.path.islink(where) else where  # noqa: PTH114
            real = real.casefold()
            if real in files:
                raise MplayerError(
                    f"'{files[real]}' and '{path}' would be one file. Choose another"
                    f" name, or another folder{_ELSEWHERE}"
                )
            files[real] = path
        self._planned = frozenset(files.values())

    def require_free(self, path: PurePosixPath) -> None:
        """Raises MplayerError if something is in the way of `path`, or beside it."""
        for part in (*reversed(path.parents[:-1]), path):
            with os_errors_of(path):
                self._require_one_case(part)
                if part != path:
                    self._require_folder(part, path)
        self._require_unshadowed(path)

    def _require_folder(self, folder: PurePosixPath, path: PurePosixPath) -> None:
        where = self._root / folder
        if folder in self._planned or (os.path.lexists(where) and not where.is_dir()):
            raise MplayerError(
                f"'{path}' needs the folder '{folder}', but that is no folder. Move it,"
                f" or choose another folder{_ELSEWHERE}"
            )

    def _require_one_case(self, path: PurePosixPath) -> None:
        """Other machines hold `my_layer.py` and `My_layer.py` to be one file."""
        names = self._names(path.parent)
        if path.name in names:
            return
        for name in names:
            if name.casefold() == path.name.casefold():
                raise MplayerError(
                    f"'{path}' and '{path.with_name(name)}' differ in letter case"
                    " alone, so that some systems hold them to be one. Choose another"
                    f" name, or another folder{_ELSEWHERE}"
                )

    def _require_unshadowed(self, path: PurePosixPath) -> None:
        """Python imports the package `x/` where the module `x.py` stands beside it."""
        if path.name == "__init__.py":
            package, module = path.parent, path.parent.parent / f"{path.parent.name}.py"
            other = module
        else:
            package, module = path.with_suffix(""), path
            other = package / "__init__.py"
        if path.suffix != ".py" or not self._exists(other) or self._is_on_disk(path):
            return
        raise MplayerError(
            f"'{path}' cannot stand beside '{other}': Python would import the package"
            f" '{package}' and never the module '{module}'. Choose another name, or"
            f" another folder{_ELSEWHERE}"
        )

    def _exists(self, path: PurePosixPath) -> bool:
        return path in self._planned or self._is_on_disk(path)

    def _is_on_disk(self, path: PurePosixPath) -> bool:
        return os.path.lexists(self._root / path)

    def _names(self, folder: PurePosixPath) -> frozenset[str]:
        if folder not in self._folders:
            where = self._root / folder
            names = os.listdir(where) if where.is_dir() else ()  # noqa: PTH208 -- names alone
            self._folders[folder] = frozenset(names)
        return self._folders[folder]


def _read(root: Path, path: PurePosixPath) -> bytes | None:
    """The present contents of a file, through a link to it; None where none is."""
    where = root / path
    with os_errors_of(path):
        try:
            mode = where.stat().st_mode
        except FileNotFoundError:
            if not os.path.lexists(where):
                return None
            raise MplayerError(
                f"'{path}' is a link to nothing. Remove it, or choose another"
                f" folder{_ELSEWHERE}"
            ) from None
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
            raise MplayerError(
                f"'{path}' is {what}. Move it, or choose another folder{_ELSEWHERE}"
            )
        return where.read_bytes()


def _encoded(path: PurePosixPath, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise MplayerError(
            f"'{path}' would hold a character that UTF-8 has not: {error}. Leave it out"
            " of --doc."
        ) from error


def _require_python(path: PurePosixPath, data: bytes) -> None:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is the user's affair
            compile(data, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise MplayerError(
            f"'{path}' would be no valid Python: {error}. Please report this, with the"
            " command that led to it."
        ) from error


def _diff(change: Change) -> str:
    if change.before == change.after:
        return ""
    import difflib

    name = str(change.path)
    old, new = f"a/{name}", f"b/{name}"
    header = [f"diff --git {old} {new}\n"]
    if change.before is None:
        header.append("new file mode 100644\n")
    if change.after is None:
        header.append("deleted file mode 100644\n")
    hunks = difflib.unified_diff(
        _lines(change.before or b""),
        _lines(change.after or b""),
        # A tab ends a name that holds a space.
        "/dev/null" if change.before is None else _ended(old),
        "/dev/null" if change.after is None else _ended(new),
    )
    return "".join(header) + "".join(map(_with_end, hunks))


def _ended(name: str) -> str:
    return f"{name}\t" if " " in name else name


def _lines(data: bytes) -> list[str]:
    """The lines as a patch counts them: a line feed alone ends one."""
    text = data.decode("utf-8", errors="replace")
    return list(io.StringIO(text, newline="\n"))


def _with_end(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
