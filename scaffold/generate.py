"""specs and place -> plan: files of layers, their exports and their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaffold import __version__
from scaffold.errors import MplayerError
from scaffold.plan import Plan, make_plan
from scaffold.record import (
    Export,
    Generated,
    Record,
    export_hash,
    hunks,
    read_records,
    record_key,
    record_texts,
    sha256,
)
from scaffold.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path, PurePosixPath

    from scaffold.project import Placement
    from scaffold.rendering import Texts
    from scaffold.spec import LayerSpec, Request


def plan_layers(
    layers: Iterable[tuple[Request, LayerSpec]],
    place: Placement,
    *,
    team: Path | None = None,
    force: bool = False,
) -> Plan:
    """Plans modules, tests, exports and records.

    Args:
        layers: What was asked for, as the records will have it, and the layers that it
            describes.
        place: Where their files go.
        team: A team's folder of templates.
        force: Whether files that exist with other contents are replaced.

    Returns:
        The plan; nothing has been written.

    Raises:
        MplayerError: If a file cannot go where it should.
    """
    files: dict[PurePosixPath, str] = {}
    records: dict[PurePosixPath, str] = {}
    proven: set[PurePosixPath] = set()
    edits: dict[PurePosixPath, str] = dict.fromkeys(place.packages, "")
    seen: dict[PurePosixPath, bytes | None] = dict.fromkeys(place.packages)
    if place.init is not None:
        read = _read_text(place.root, place.init)
        seen[place.init] = None if read is None else read.encode()
        edits[place.init] = read or ""
    others = read_records(place.root)
    for request, spec in layers:
        texts = render(spec, place.package, team)
        record = new_record(request, spec, place, texts)
        if place.init is not None:
            before = edits[place.init]
            edits[place.init] = _with_export(before, record, place.init)
            undo = hunks(before, edits[place.init])
            export = Export(place.init, export_hash(edits[place.init]), undo)
            record = record._replace(export=export)
        record = _with_history(record, place.root, edits, others)
        files |= {record.module.path: texts.module, record.test.path: texts.test}
        records |= record_texts(record, texts.module, texts.test)
        if texts.ours:
            # Only names and literals go into a matrix of ours, and all else in it is
            # the same for every layer: to parse it would take a tenth of a run.
            proven.add(record.test.path)
    edits |= records
    return make_plan(place.root, files, edits, force=force, proven=proven, seen=seen)


def new_record(
    request: Request, spec: LayerSpec, place: Placement, texts: Texts
) -> Record:
    """Returns the record of a layer whose folders were all there before.

    Args:
        request: What was asked for.
        spec: The layer that it describes; its kind is recorded.
        place: Where its files go.
        texts: Its files.
    """
    module = place.layer_dir / f"{spec.module}.py"
    test = place.test_dir / f"test_{spec.module}.py"
    return Record(
        request=request._replace(kind=spec.kind),
        version=__version__,
        module=Generated(module, sha256(texts.module)),
        test=Generated(test, sha256(texts.test)),
        package=place.package,
        export=Export(place.init, "", ()) if place.init else None,
        created=(),
        key=record_key(module),
    )


def _with_export(source: str, record: Record, init: PurePosixPath) -> str:
    """Returns an `__init__.py` with the export of a layer."""
    from scaffold.exports import add_export

    module, name = record.module.path.stem, record.request.name
    try:
        return add_export(source, module, name, record.package)
    except MplayerError as error:
        raise MplayerError(f"'{init}': {error}") from error


def _read_text(root: Path, init: PurePosixPath) -> str | None:
    """Returns the text of an `__init__.py`, or None where there is none."""
    path = root / init
    try:
        return path.read_bytes().decode("utf-8") if path.exists() else None
    except UnicodeDecodeError as error:
        raise MplayerError(
            f"'{init}' is not UTF-8, so it cannot gain an export. "
            "Convert it, or choose another folder with --layer-dir."
        ) from error


def _with_history(
    record: Record,
    root: Path,
    edits: Iterable[PurePosixPath],
    others: Iterable[Record],
) -> Record:
    """Adds what came with this layer, or with others that use it too.

    What one layer has brought the next ones keep alive: the last to go takes it away.
    """
    files = [record.module.path, record.test.path, *edits]
    parents = {parent for path in files for parent in path.parents if parent.name}
    created = {path for path in (*parents, *edits) if not (root / path).exists()}
    for other in others:
        created |= {
            path
            for path in other.created
            if path in parents or (path.suffix == ".py" and path.parent in parents)
        }
        if other.key == record.key:
            created |= {*other.created}
            if other.export and record.export and not record.export.undo:
                # The export is there already: how it came is what that record says.
                record = record._replace(export=other.export)
    return record._replace(created=tuple(sorted(created)))
