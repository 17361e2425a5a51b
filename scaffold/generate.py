"""spec and place -> plan: a layer's files and the export that goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaffold.errors import MplayerError
from scaffold.plan import Plan, make_plan
from scaffold.render import render

if TYPE_CHECKING:
    from pathlib import PurePosixPath

    from scaffold.project import Placement
    from scaffold.spec import LayerSpec


def plan_layer(spec: LayerSpec, place: Placement, *, force: bool = False) -> Plan:
    """Plans the module, its test and its export.

    Args:
        spec: The layer.
        place: Where its files go.
        force: Whether files that exist with other contents are replaced.

    Returns:
        The plan; nothing has been written.

    Raises:
        MplayerError: If a file cannot go where it should.
    """
    texts = render(spec, place.package)
    files = {
        place.layer_dir / f"{spec.module}.py": texts.module,
        place.test_dir / f"test_{spec.module}.py": texts.test,
    }
    edits: dict[PurePosixPath, str] = dict.fromkeys(place.packages, "")
    if place.init is not None:
        edits[place.init] = _with_export(spec, place, place.init)
    return make_plan(place.root, files, edits, force=force)


def _with_export(spec: LayerSpec, place: Placement, init: PurePosixPath) -> str:
    from scaffold.exports import add_export

    path = place.root / init
    try:
        source = path.read_bytes().decode("utf-8") if path.exists() else ""
        return add_export(source, spec.module, spec.name, place.package)
    except UnicodeDecodeError as error:
        raise MplayerError(
            f"'{init}' is not UTF-8, so it cannot gain the export of {spec.name}. "
            "Convert it, or choose another folder with --layer-dir."
        ) from error
    except MplayerError as error:
        raise MplayerError(f"'{init}': {error}") from error
