"""The export of a layer in the `__init__.py` of its package.

The text is edited by position, so that all that is not the export stays as it was. The
order is that of ruff's isort and RUF022, wherever the file keeps it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from scaffold.errors import MplayerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WIDTH = 88
# What a formatter does not count as part of the line.
_PRAGMA = re.compile(r"\s*#\s*(noqa|(type|ruff|pyright|pylint|flake8):)", re.IGNORECASE)

_Display = ast.List | ast.Tuple
_Import = ast.Import | ast.ImportFrom
_Node = ast.stmt | ast.expr | ast.alias
_Item = TypeVar("_Item")


def add_export(source: str, module: str, name: str, package: str = "") -> str:
    """Adds `from .module import Name`, and `Name` in `__all__`, to an `__init__.py`.

    A file without `__all__` exports the name as `Name as Name`, unless it is empty (but
    for a docstring, comments and `__future__` imports) and so gains an `__all__`, or
    imports its other names plainly and unused. Adding an export twice changes nothing.

    Args:
        source: The text, with its line endings and byte-order mark, or "".
        module: The module beside the `__init__.py`.
        name: The class that it exports.
        package: The dotted name of the package, by which absolute imports of its other
            modules are known. Where there are such imports alone, the new one is
            absolute too.

    Returns:
        The new text. It is formatted and sorted if `source` was.

    Raises:
        MplayerError: If the file cannot be edited with certainty. The message says
            which line to add by hand.
    """
    import warnings

    mark = "\ufeff" if source.startswith("\ufeff") else ""
    export = _Export(module, name, package)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes are not our business
        try:
            text = _Text(source[len(mark) :])
        except (SyntaxError, ValueError, RecursionError) as error:
            raise export.refusal(f"it is no valid Python ({error})") from error
        try:
            return mark + _edited(text, export)
        except SyntaxError as error:
            raise export.refusal("its layout is unusual") from error


def remove_export(source: str, module: str, name: str, package: str = "") -> str:
    """Takes out what `add_export` has put in, wherever it stands now.

    Args:
        source: The text, with its line endings and byte-order mark.
        module: The module beside the `__init__.py`.
        name: The class that it exports.
        package: The dotted name of the package, as for `add_export`.

    Returns:
        The new text; it imports nothing from the module. It is `source` if that does
        not either.

    Raises:
        MplayerError: If the file uses the class otherwise. The message says which line
            to mend by hand.
    """
    import warnings

    mark = "\ufeff" if source.startswith("\ufeff") else ""
    export = _Export(module, name, package, gain=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = source[len(mark) :]
            _require_unused(ast.parse(text), export)
            while own := export.own(_Text(text).tree):
                text = _without_import(_Text(text), own[0], export)
            if text == source[len(mark) :]:
                return source
            text = _without_listing(_Text(text), export)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise export.refusal(f"it is no valid Python ({error})") from error
    lines = _Text(text).lines
    while lines and not lines[-1].strip():
        lines.pop()
    return mark + "".join(lines)


def _without_import(text: _Text, node: ast.ImportFrom, export: _Export) -> str:
    index = next(
        (i for i, a in enumerate(node.names) if a.name == export.name),
        None,
    )
    alias = None if index is None else node.names[index]
    if index is None or (alias and alias.asname not in (None, export.name)):
        raise export.refusal(f"line {node.lineno} imports from it otherwise")
    if len(node.names) > 1:
        return _without_item(text, node.names, index)
    start, end = text.line_start(node.lineno), text.line_start(_end(node) + 1)
    head, tail = (
        text.value[start : text.span(node)[0]],
        text.value[text.span(node)[1] : end],
    )
    if head.strip() or not re.fullmatch(r"\s*(#.*)?\s*", tail):
        raise export.refusal(f"line {node.lineno} holds more than its import")
    above, below = (
        text.lines[node.lineno - 2 : node.lineno - 1],
        text.lines[_end(node) :],
    )
    if above and below and not (above[0].strip() or below[0].strip()):
        end += len(below[0])  # the import stood alone between two empty lines
    return text.replaced(start, end, "")


def _without_listing(text: _Text, export: _Export) -> str:
    display = _all_display(text.tree)
    names = _strings(display) if display else []
    if not display or export.name not in names:
        return text.value
    index = names.index(export.name)
    rest = [node for i, node in enumerate(display.elts) if names[i] != export.name]
    opening, closing = "[]" if isinstance(display, ast.List) else "()"
    short = not rest or (isinstance(display, ast.Tuple) and len(rest) == 1)
    if short and "#" not in text.of(display):
        # A tuple of one must keep its comma.
        item = f"{text.of(rest[0])}," if rest else ""
        return text.replaced(*text.span(display), f"{opening}{item}{closing}")
    new = _without_item(text, display.elts, index)
    left = _all_display(ast.parse(new))
    if not left or _strings(left) != [item for item in names if item != export.name]:
        raise export.refusal(f"the layout of line {display.lineno} is unusual")
    return new


def _without_item(text: _Text, items: Sequence[_Node], index: int) -> str:
    """Takes an item out of a list of several, with its line where it has its own."""
    start, end = text.span(items[index])
    line = text.line_start(items[index].lineno)
    below = text.line_start(_end(items[index]) + 1)
    own_line = not text.value[line:start].strip() and re.fullmatch(
        r"\s*,?\s*(#.*)?\s*", text.value[end:below]
    )
    if own_line:
        return text.replaced(line, below, "")
    if index + 1 < len(items):
        stop = text.span(items[index + 1])[0]
    else:
        stop, start = end, text.span(items[index - 1])[1] if index else start
    if "#" in text.value[start:stop]:
        # The comments there may be about other items: the item goes, and its comma.
        start = text.span(items[index])[0]
        comma = re.compile(r"[ \t]*,[ \t]*").match(text.value, end)
        stop = comma.end() if comma else end
    return text.replaced(start, stop, "")


def _require_unused(tree: ast.Module, export: _Export) -> None:
    """Nothing but imports at the top and `__all__` may need the module that is gone."""
    own = export.own(tree)
    display = _all_display(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in own:
            itself = node.level == 1 and not node.module
            if export.sibling(node) == export.module or (
                itself and export.module in {alias.name for alias in node.names}
            ):
                raise export.refusal(f"line {node.lineno} imports from it otherwise")
        named = isinstance(node, ast.Name) and node.id == export.name
        listed = isinstance(node, ast.Constant) and node.value == export.name
        if own and (named or (listed and not (display and node in display.elts))):
            line = getattr(node, "lineno", 1)
            raise export.refusal(f"line {line} uses the class")


@dataclass(frozen=True)
class _Export:
    module: str
    name: str
    package: str
    gain: bool = True
    """Whether the file shall have it, or shall have it no longer."""

    def refusal(self, why: str) -> MplayerError:
        if not self.gain:
            return MplayerError(
                f"The __init__.py cannot lose the export of {self.name} safely: {why}."
                f" Take out by hand what it has of .{self.module}, and run this again."
            )
        return MplayerError(
            f"The __init__.py cannot gain the export of {self.name} safely: {why}. Add"
            f" by hand: from .{self.module} import {self.name}"
        )

    def sibling(self, node: ast.stmt) -> str | None:
        """The module of the package from which a statement imports."""
        if not isinstance(node, ast.ImportFrom) or not node.module:
            return None
        if node.level == 1:
            return node.module
        prefix = f"{self.package}."
        if node.level == 0 and self.package and node.module.startswith(prefix):
            return node.module[len(prefix) :]
        return None

    def own(self, tree: ast.Module) -> list[ast.ImportFrom]:
        """The imports of the layer's own module."""
        return [
            node
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and self.sibling(node) == self.module
        ]

    def is_bound(self, tree: ast.Module) -> bool:
        return any(
            alias.name == self.name and alias.asname in (None, self.name)
            for node in self.own(tree)
            for alias in node.names
        )


class _Text:
    """A module's text and its tree, with positions that lead from one to the other."""

    def __init__(self, value: str) -> None:
        self.value = value
        # As Python counts lines: a form feed or U+2028 ends none.
        self.lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", value)
        first = re.search(r"\r?\n", value)
        self.eol = first.group() if first else "\n"
        self.tree = ast.parse(value)

    def line_start(self, lineno: int) -> int:
        return sum(map(len, self.lines[: lineno - 1]))

    def at(self, lineno: int, column: int) -> int:
        line = self.lines[lineno - 1].encode()[:column]
        return self.line_start(lineno) + len(line.decode())

    def span(self, node: _Node) -> tuple[int, int]:
        return (
            self.at(node.lineno, node.col_offset),
            self.at(_end(node), node.end_col_offset or 0),
        )

    def of(self, node: _Node) -> str:
        start, end = self.span(node)
        return self.value[start:end]

    def replaced(self, start: int, end: int, text: str) -> str:
        return self.value[:start] + text + self.value[end:]

    def with_lines(self, lineno: int, *new: str) -> str:
        """The text with `new` lines before the line `lineno`."""
        position = self.line_start(lineno)
        head = self.value[:position]
        if head and not head.endswith(("\r", "\n")):
            head += self.eol
        return head + "".join(line + self.eol for line in new) + self.value[position:]


def _edited(text: _Text, export: _Export) -> str:
    """The new text, read back rather than trusted: SyntaxError where it is not so."""
    imported, by_hand = text.value, export.is_bound(text.tree)
    if not by_hand:
        imported = _add_import(text, export)
    listed = _add_to_all(
        _Text(imported), export, create=_is_blank(text.tree), by_hand=by_hand
    )
    tree = ast.parse(listed)
    display = _all_display(tree)
    if not export.is_bound(tree) or (display and export.name not in _strings(display)):
        raise SyntaxError
    return listed


def _end(node: _Node) -> int:
    """The last line of a node; the parser always gives one."""
    return node.end_lineno or node.lineno


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _docstring_end(tree: ast.Module) -> int:
    """The last line of the docstring, or 0."""
    first = tree.body[0] if tree.body else None
    return _end(first) if first and _is_docstring(first) else 0


def _is_blank(tree: ast.Module) -> bool:
    """Whether there is nothing but a docstring, comments and `__future__` imports."""
    return all(
        (node is tree.body[0] and _is_docstring(node))
        or (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        for node in tree.body
    )


def _binds(text: str, name: str) -> bool:
    """Whether a module gives a value to `name` at its top level."""
    import symtable

    try:
        symbol = symtable.symtable(text, "__init__.py", "exec").lookup(name)
    except KeyError:
        return False
    return symbol.is_assigned() or symbol.is_imported()


def _add_import(text: _Text, export: _Export) -> str:
    if _binds(text.value, export.name):
        raise export.refusal(f"it gives {export.name} another meaning")
    plain = (
        _is_blank(text.tree)
        or _binds(text.value, "__all__")
        or _imports_plainly(text, export)
    )
    own = export.own(text.tree)
    extensible = [node for node in own if not any(a.asname for a in node.names)]
    if plain and extensible and extensible[0].names[0].name != "*":
        return _add_to_import(text, extensible[0], export.name)
    return _add_import_line(text, export, plain=plain)


def _imports_plainly(text: _Text, export: _Export) -> bool:
    """Whether other layers are imported as `from .module import Name`, for export only.

    Ruff objects to such a file; so a new line of that kind breaks nothing that held.
    """
    aliases = [
        alias
        for node in text.tree.body
        if isinstance(node, ast.ImportFrom) and export.sibling(node)
        for alias in node.names
    ]
    used = {node.id for node in ast.walk(text.tree) if isinstance(node, ast.Name)}
    return (
        bool(aliases)
        and not any(a.asname or a.name == "*" or a.name in used for a in aliases)
        and "noqa" not in text.value
    )


def _add_to_import(text: _Text, node: ast.ImportFrom, name: str) -> str:
    start, end = text.span(node)
    head = text.value[start : text.span(node.names[0])[0]].split("(")[0].rstrip()
    names = [alias.name for alias in node.names]
    slot = _slot(names, name, _member_key)
    if node.lineno != node.end_lineno:
        return _add_to_lines(text, node, node.names, slot, name)
    names.insert(slot, name)
    tail = text.value[end:].splitlines()[:1] or [""]
    one_line = f"{head} {', '.join(names)}"
    if _fits(one_line, tail[0]):
        return text.replaced(start, end, one_line)
    # The comment goes to the top, where isort has it and a `noqa` still works.
    lines = [f"{head} ({tail[0]}", *(f"    {item}," for item in names), ")"]
    return text.replaced(start, end + len(tail[0]), text.eol.join(lines))


def _add_import_line(text: _Text, export: _Export, *, plain: bool) -> str:
    block = _import_block(text.tree, export)
    siblings = [node for node in block if export.sibling(node)]
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in siblings)
    prefix = export.package if siblings and not relative else ""
    head = f"from {prefix}.{export.module} import"
    item = export.name if plain else f"{export.name} as {export.name}"
    lines = [f"{head} {item}"]
    if not _fits(*lines):
        lines = [f"{head} (", f"    {item},", ")"]
    if siblings:
        slot = _slot(
            [(export.sibling(node) or "", node.names[0].name) for node in siblings],
            (export.module, export.name),
            lambda pair: (_natural(pair[0].lower()), *_member_key(pair[1])),
        )
        if slot == 0:
            return text.with_lines(siblings[0].lineno, *lines)
        return text.with_lines(_end(siblings[slot - 1]) + 1, *lines)
    if _is_blank(text.tree):
        separator = [""] if text.value.strip() and text.lines[-1].strip() else []
        return text.with_lines(len(text.lines) + 1, *separator, *lines)
    if block:
        last = block[-1]
        local = isinstance(last, ast.ImportFrom) and last.level
        return text.with_lines(_end(last) + 1, *([] if local else [""]), *lines)
    return _add_first_import(text, lines)


def _add_first_import(text: _Text, lines: list[str]) -> str:
    """Puts the import between the docstring or head comment and the first statement."""
    above = _docstring_end(text.tree)
    if not above:
        while text.lines[above].startswith("#"):
            above += 1
    below = above
    while below < len(text.lines) and not text.lines[below].strip():
        below += 1
    first = text.tree.body[1 if _docstring_end(text.tree) else 0]
    definition = isinstance(
        first, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    )
    adjoins = all(line.strip() for line in text.lines[below : first.lineno])
    gap = ["", ""] if definition and adjoins else [""]
    new = text.eol.join([*([""] if above else []), *lines, *gap, ""])
    return text.replaced(text.line_start(above + 1), text.line_start(below + 1), new)


def _import_block(tree: ast.Module, export: _Export) -> list[_Import]:
    """The imports at the top of the file that stand together with those of siblings.

    Where none imports a sibling: the last that stand together.
    """
    blocks: list[list[_Import]] = [[]]
    for node in tree.body[1 if _docstring_end(tree) else 0 :]:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            blocks[-1].append(node)
        elif isinstance(node, (ast.If, ast.Try, ast.With)) or _sets_dunder(node):
            blocks.append([])
        else:
            break
    filled = [block for block in blocks if block]
    beside = [block for block in filled if any(map(export.sibling, block))]
    return (beside or filled or [[]])[-1]


def _sets_dunder(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id.startswith("__")
    )


def _add_to_all(text: _Text, export: _Export, *, create: bool, by_hand: bool) -> str:
    if not _binds(text.value, "__all__"):
        if not create:
            return text.value
        lines = [f'__all__ = ["{export.name}"]']
        if not _fits(*lines):
            lines = ["__all__ = [", f'    "{export.name}",', "]"]
        return text.with_lines(len(text.lines) + 1, "", *lines)
    display = _all_display(text.tree)
    if display is None:
        if by_hand:  # then so is its place in a list that is computed
            return text.value
        raise export.refusal(f"it computes __all__, which must name '{export.name}'")
    names = _strings(display)
    if export.name in names:
        return text.value
    slot = _slot(names, export.name, lambda item: (_kind(item), _natural(item)))
    items = [text.of(node) for node in display.elts]
    quote = items[0][0] if items and items[0][0] in "'\"" else '"'
    item = f"{quote}{export.name}{quote}"
    if display.lineno != display.end_lineno:
        return _add_to_lines(text, display, display.elts, slot, item)
    return _add_to_line(text, display, [*items[:slot], item, *items[slot:]])


def _all_display(tree: ast.Module) -> _Display | None:
    """The literal that is the one value of `__all__`; `+=` may add to it later."""
    added = [node.target for node in ast.walk(tree) if isinstance(node, ast.AugAssign)]
    stores = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
        and node.id == "__all__"
        and isinstance(node.ctx, ast.Store)
        and node not in added
    ]
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        value = node.value
        if (
            targets == stores
            and isinstance(value, (ast.List, ast.Tuple))
            and len(_strings(value)) == len(value.elts)
        ):
            return value
    return None


def _strings(display: _Display) -> list[str]:
    return [
        node.value
        for node in display.elts
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def _add_to_line(text: _Text, display: _Display, items: list[str]) -> str:
    start, end = text.span(display)
    head = text.value[text.line_start(display.lineno) : start]
    tail = text.value[end:].splitlines()[:1] or [""]
    opening, closing = "[]" if isinstance(display, ast.List) else "()"
    comma = "," if len(items) == 1 and isinstance(display, ast.Tuple) else ""
    new = f"{opening}{', '.join(items)}{comma}{closing}"
    if not _fits(head + new, tail[0]):
        new = text.eol.join([opening, *(f"    {item}," for item in items), closing])
    return text.replaced(start, end, new)


def _add_to_lines(
    text: _Text, node: _Node, items: Sequence[_Node], slot: int, item: str
) -> str:
    """Adds an item to a list of several lines; one a line, if it has that form."""
    if not items:
        return text.with_lines(_end(node), f"    {item},")
    rows = [node.lineno, *(other.lineno for other in items), _end(node)]
    one_a_line = len(set(rows)) == len(rows)
    first = items[0]
    if slot == 0:
        start = text.span(first)[0]
        if not one_a_line:
            return text.replaced(start, start, f"{item}, ")
        line_start = text.line_start(first.lineno)
        indent = text.value[line_start:start]
        return text.replaced(line_start, line_start, f"{indent}{item},{text.eol}")
    last = items[slot - 1]
    end = text.span(last)[1]
    if not one_a_line:
        return text.replaced(end, end, f", {item}")
    comma = "" if text.value[end:].lstrip(" \t").startswith(",") else ","
    line_end = text.line_start(_end(last) + 1)
    indent = " " * last.col_offset
    line = f"{indent}{item},{text.eol}"
    return text.replaced(end, line_end, comma + text.value[end:line_end] + line)


def _slot(items: list[_Item], new: _Item, key: Callable[[_Item], Any]) -> int:
    """Where `new` goes: in order if there is one, else at the end."""
    import bisect

    for order in (key, lambda item: item):
        keys = [order(item) for item in items]
        if keys == sorted(keys):
            return bisect.bisect(keys, order(new))
    return len(items)


def _member_key(name: str) -> tuple[int, list[str | int]]:
    """The order of names in an import, where letter case decides the kind alone."""
    return _kind(name), _natural(name.lower())


def _kind(name: str) -> int:
    """Constants come before classes, and these before the rest."""
    if name.isupper() and len(name) > 1:
        return 0
    return 1 if name[:1].isupper() else 2


def _natural(name: str) -> list[str | int]:
    """The sort key by which `layer2` comes before `layer10`."""
    return [int(s) if s.isdecimal() else s for s in re.split(r"(\d+)", name)]


def _fits(line: str, tail: str = "") -> bool:
    """Whether a line and what follows on it are within the width, pragmas apart."""
    return len(line) + (0 if _PRAGMA.match(tail) else len(tail)) <= WIDTH
