"""record -> plan: what `mplayer new` has written, taken back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from scaffold.errors import MplayerError
from scaffold.locate import Locator
from scaffold.plan import Plan, make_plan
from scaffold.record import Record, sha256, undone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path, PurePosixPath


class Removal(NamedTuple):
    """What taking a layer back would do."""

    plan: Plan
    findings: tuple[str, ...]
    """What the user has to see to, each a sentence or two."""


def plan_remove(
    root: Path, record: Record, others: Iterable[Record], *, force: bool = False
) -> Removal:
    """Plans to take a layer back, with its test, its export and its record.

    A file that was moved is found by its class. Folders and `__init__.py` files that
    came with the layer go once nothing else is in them, and no layer is left that came
    with them too.

    Args:
        root: The project.
        record: The layer.
        others: The other layers of the project.
        force: Whether edited files go too.

    Returns:
        The plan, in which an edited file is a conflict, unless forced; and what it
        leaves for the user to take away.

    Raises:
        MplayerError: If the export cannot be taken out with certainty.
    """
    kept = {path for other in others for path in other.created}
    created = [path for path in record.created if path not in kept]
    removed, findings = _own_files(root, record)
    edits, seen = _without_export(root, record, force=force)
    for path in created:
        if path.suffix != ".py" or not (root / path).is_file():
            continue
        data = seen.setdefault(path, (root / path).read_bytes()) or b""
        text = edits.get(path, data.decode("utf-8", errors="replace"))
        if text.strip() in ("", "__all__ = []"):
            edits.pop(path, None)
            removed[path] = True
    own = (record.path, *map(record.pristine_path, ("module", "test")))
    folders = {path for path in created if path.suffix != ".py"}
    folders |= {parent for parent in record.path.parents if parent.name}
    for path in [path for path in removed if path.suffix == ".py"]:
        # What Python has compiled of it would keep its folder from going.
        cache = path.parent / "__pycache__"
        for compiled in (root / cache).glob(f"{path.stem}.*.pyc"):
            removed[cache / compiled.name] = True
        folders.add(cache)
    removed |= {path: True for path in own if (root / path).is_file()}
    for path in seen.keys() - removed.keys():
        text = edits.get(path, (seen[path] or b"").decode("utf-8", errors="replace"))
        findings += _still_named(path, record.request.name, text)
    plan = make_plan(
        root, {}, edits, force=force, removed=removed, folders=folders, seen=seen
    )
    return Removal(plan, tuple(findings))


def _own_files(
    root: Path, record: Record
) -> tuple[dict[PurePosixPath, bool], list[str]]:
    """Returns where its module and test are, each with whether it may go unasked.

    Besides, what the user must see to.
    """
    files: dict[PurePosixPath, bool] = {}
    findings = []
    locator = Locator(root)
    for part in ("module", "test"):
        places = locator.places(record, part)
        generated = record.part(part)
        for path in places:
            same = _hash(root / path) == generated.sha256
            if path == generated.path or (same and len(places) == 1):
                files[path] = same
            else:
                # It may be another layer of this name: no --force is about that.
                findings.append(
                    f"'{path}' holds {record.request.name} too, and stays. Take it away"
                    " by hand if it is the layer."
                )
    return files, findings


def _still_named(path: PurePosixPath, name: str, text: str) -> Iterator[str]:
    """Says where an `__init__.py` names a class even so, as one that was moved."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(rf"\b{name}\b", line.partition("#")[0]):
            yield (
                f"'{path}', line {number}, still names {name}, which is gone. Take it"
                " out by hand."
            )


def _without_export(
    root: Path, record: Record, *, force: bool
) -> tuple[dict[PurePosixPath, str], dict[PurePosixPath, bytes | None]]:
    """What the `__init__.py` shall hold, and what it held when that was decided."""
    from scaffold.exports import remove_export

    export = record.export
    if export is None or not (root / export.path).is_file():
        return {}, {}
    data = (root / export.path).read_bytes()
    try:
        source = data.decode("utf-8")
        text = undone(export, source)
        if text is None:
            module, name = record.module.path.stem, record.request.name
            text = remove_export(source, module, name, record.package)
    except UnicodeDecodeError as error:
        raise MplayerError(
            f"'{export.path}' is not UTF-8, so it cannot lose the export of"
            f" {record.request.name}. Convert it, and run this again."
        ) from error
    except MplayerError as error:
        if force:
            return {}, {export.path: data}
        raise MplayerError(f"'{export.path}': {error}") from error
    return ({} if text == source else {export.path: text}), {export.path: data}


def _hash(path: Path) -> str:
    try:
        return sha256(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        return ""
