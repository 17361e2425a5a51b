"""records -> plan: generated code as this mplayer writes it, with the user's edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scaffold import __version__
from scaffold.errors import MplayerError
from scaffold.grammar import parse_request
from scaffold.locate import Locator
from scaffold.merge import holds_markers, merge
from scaffold.plan import Merged, Plan, make_plan
from scaffold.record import Generated, Record, read_pristine, record_texts, sha256
from scaffold.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path, PurePosixPath

    from scaffold.rendering import Texts


class _LeaveError(Exception):
    """Why a file is left as it is."""


@dataclass(frozen=True)
class Update:
    """What an update would do."""

    plan: Plan
    stale: tuple[PurePosixPath, ...]
    """Files that this mplayer, or the new spec, would generate otherwise."""
    findings: tuple[str, ...]
    """What the user has to see to, each a sentence or two."""


def plan_update(
    root: Path,
    records: Iterable[Record],
    *,
    changes: Mapping[str, Any] | None = None,
    team: Path | None = None,
    force: bool = False,
) -> Update:
    """Renders layers anew and merges what has changed into their files.

    A file that was not edited becomes the new text. An edited one is merged, with
    markers where both have changed the same lines. One that was moved is found by its
    class. One that was deleted stays so. Exports are left alone.

    Args:
        root: The project.
        records: The layers.
        changes: Fields of `Request` that shall be otherwise from now on.
        team: A team's folder of templates.
        force: Whether the new text replaces edited files, and deleted ones come back.

    Returns:
        The plan; nothing has been written.

    Raises:
        MplayerError: If a layer cannot be rendered, or the record is damaged.
    """
    texts: dict[PurePosixPath, str] = {}
    merged: dict[PurePosixPath, Merged] = {}
    edits: dict[PurePosixPath, str] = {}
    read: dict[PurePosixPath, bytes] = {}
    stale: list[PurePosixPath] = []
    findings: list[str] = []
    locator = Locator(root)
    for record in records:
        request = record.request._replace(**(changes or {}))
        try:
            spec = parse_request(request, team)
            new = render(spec, record.package, team)
        except MplayerError as error:
            raise MplayerError(f"{request.name}: {error}") from error
        request = request._replace(kind=spec.kind)
        layer = _Layer(locator, root, record._replace(request=request), new, force)
        texts |= layer.texts
        merged |= layer.merged
        read |= layer.read
        stale += layer.stale
        findings += layer.findings
        if layer.record != record:
            edits |= record_texts(layer.record, *layer.pristine.values())
    plan = make_plan(root, texts, edits, force=True, merged=merged, seen=read)
    return Update(plan, tuple(stale), tuple(findings))


class _Layer:
    """One layer, part by part."""

    def __init__(
        self, locator: Locator, root: Path, record: Record, new: Texts, force: bool
    ) -> None:
        self.locator = locator
        self.root = root
        self.record = record
        self.force = force
        self.texts: dict[PurePosixPath, str] = {}
        self.merged: dict[PurePosixPath, Merged] = {}
        self.read: dict[PurePosixPath, bytes] = {}
        self.stale: list[PurePosixPath] = []
        self.findings: list[str] = []
        self.pristine = {
            "module": self._update("module", new.module),
            "test": self._update("test", new.test),
        }
        """By part: what the record shall hold."""

    def _update(self, part: str, new: str) -> str:
        """Plans one file; returns the text that it will be measured by from now on."""
        generated = self.record.part(part)
        places = self.locator.places(self.record, part)
        path = places[0] if len(places) == 1 else generated.path
        fresh = sha256(new) == generated.sha256
        if not fresh:
            self.stale.append(path)
        if self.force:
            self.texts[path] = pristine = new
        else:
            pristine = read_pristine(self.root, self.record, part)
            try:
                self._require_resolved(path)
                if not fresh:
                    self._require_one(path, places)
                    self._merge(path, pristine, new)
                    pristine = new
            except _LeaveError as reason:
                self.findings.append(str(reason))
        updated = Generated(path, sha256(pristine))
        if updated.sha256 != generated.sha256:
            self.record = self.record._replace(version=__version__)
        self.record = self.record.with_part(part, updated)
        return pristine

    def _merge(self, path: PurePosixPath, pristine: str, new: str) -> None:
        users = self._users_text(path)
        try:
            merged = merge(pristine, users, new, label=f"mplayer {__version__}")
        except MplayerError as error:
            raise MplayerError(f"'{path}': {error}") from error
        if merged is None:
            return
        if merged.text.replace("\r\n", "\n") == new:
            self.texts[path] = merged.text
            return
        self.merged[path] = merged
        if merged.conflicts:
            self.findings.append(
                f"'{path}' has been edited where its template has changed. Both texts"
                " stand between <<<<<<< and >>>>>>>: keep what is right."
            )

    def _users_text(self, path: PurePosixPath) -> str:
        """What is there now, if the template's changes can be merged into it."""
        try:
            self.read[path] = (self.root / path).read_bytes()
            return self.read[path].decode("utf-8")
        except UnicodeDecodeError:
            raise _LeaveError(
                f"'{path}' is not UTF-8, and was left as it is."
            ) from None

    def _require_one(
        self, path: PurePosixPath, places: tuple[PurePosixPath, ...]
    ) -> None:
        name = self.record.request.name
        if len(places) > 1:
            found = " and ".join(f"'{place}'" for place in places)
            raise _LeaveError(
                f"'{path}' is gone, and its template has changed. {found} hold {name}:"
                f" move the one that is the layer back to '{path}', and run this again."
            )
        if not (self.root / path).is_file():
            raise _LeaveError(
                f"'{path}' is gone, and its template has changed. Bring it back with"
                f" --force, or forget the layer: mplayer remove {name}"
            )

    def _require_resolved(self, path: PurePosixPath) -> None:
        file = self.root / path
        if file.is_file() and holds_markers(file.read_text("utf-8", errors="replace")):
            raise _LeaveError(
                f"'{path}' still holds the conflicts of an earlier update, and was left"
                " as it is. Resolve them, and run this again."
            )
