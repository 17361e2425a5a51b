"""record -> plan: what `mplayer new` has written, taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaffold.errors import MplayerError
from scaffold.plan import Plan, make_plan
from scaffold.record import Record, sha256, undone

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path, PurePosixPath


def plan_remove(
    root: Path, record: Record, others: Iterable[Record], *, force: bool = False
) -> Plan:
    """Plans to take a layer back, with its test, its export and its record.

    Folders and `__init__.py` files that came with it go once nothing else is in them,
    and no layer is left that came with them too.

    Args:
        root: The project.
        record: The layer.
        others: The other layers of the project.
        force: Whether edited files go too.

    Returns:
        The plan; an edited file is a conflict in it, unless forced.

    Raises:
        MplayerError: If the export cannot be taken out with certainty.
    """
    kept = {path for other in others for path in other.created}
    created = [path for path in record.created if path not in kept]
    removed: dict[PurePosixPath, bool] = {}
    for generated in (record.module, record.test):
        file = root / generated.path
        if file.is_file():
            removed[generated.path] = _hash(file) == generated.sha256
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
    return make_plan(
        root, {}, edits, force=force, removed=removed, folders=folders, seen=seen
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
            return {}, {}
        raise MplayerError(f"'{export.path}': {error}") from error
    return ({} if text == source else {export.path: text}), {export.path: data}


def _hash(path: Path) -> str:
    try:
        return sha256(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        return ""
