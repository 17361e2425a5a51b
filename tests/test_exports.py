"""`add_export` and `remove_export`: the one edit of files that mplayer did not write."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaffold.errors import MplayerError
from scaffold.exports import add_export, remove_export

RUFF = Path(sys.executable).with_name("ruff")
LONG = "A" * 30


def export(source: str, module: str = "my_layer", name: str = "MyLayer") -> str:
    return add_export(source, module, name, "pkg.layers")


def cases(text: str) -> dict[str, tuple[str, str]]:
    """Reads `=== name`, the text before, `--->` and the text after."""
    found = {}
    for case in text.split("=== ")[1:]:
        name, _, texts = case.partition("\n")
        before, after = texts.split("--->\n")
        found[name] = before, after
    return found


# What is there, and what it becomes. Each upper text is formatted and passes ruff, so
# each lower one must too (`test_ruff_has_nothing_to_say`).
CASES = cases('''\
=== empty
--->
from .my_layer import MyLayer

__all__ = ["MyLayer"]
=== docstring
"""Layers."""
--->
"""Layers."""

from .my_layer import MyLayer

__all__ = ["MyLayer"]
=== comment
# Copyright
--->
# Copyright

from .my_layer import MyLayer

__all__ = ["MyLayer"]
=== docstring, then comment
"""Layers."""

# None yet.
--->
"""Layers."""

# None yet.

from .my_layer import MyLayer

__all__ = ["MyLayer"]
=== future import
"""Layers."""

from __future__ import annotations
--->
"""Layers."""

from __future__ import annotations

from .my_layer import MyLayer

__all__ = ["MyLayer"]
=== first
from .norm import Norm

__all__ = ["Norm"]
--->
from .my_layer import MyLayer
from .norm import Norm

__all__ = ["MyLayer", "Norm"]
=== middle
from .dense import Dense
from .norm import Norm

__all__ = ["Dense", "Norm"]
--->
from .dense import Dense
from .my_layer import MyLayer
from .norm import Norm

__all__ = ["Dense", "MyLayer", "Norm"]
=== last, in a tuple
from .dense import Dense

__all__ = ("Dense",)
--->
from .dense import Dense
from .my_layer import MyLayer

__all__ = ("Dense", "MyLayer")
=== bare tuple
from .dense import Dense
from .norm import Norm

__all__ = "Dense", "Norm"
--->
from .dense import Dense
from .my_layer import MyLayer
from .norm import Norm

__all__ = ("Dense", "MyLayer", "Norm")
=== empty displays
__all__: list[str] = []
--->
from .my_layer import MyLayer

__all__: list[str] = ["MyLayer"]
=== empty tuple
__all__ = ()
--->
from .my_layer import MyLayer

__all__ = ("MyLayer",)
=== empty display with a comment
__all__ = [
    # None yet.
]
--->
from .my_layer import MyLayer

__all__ = [
    # None yet.
    "MyLayer",
]
=== one a line
from .dense import Dense
from .norm import Norm

__all__ = [
    "Dense",  # ours
    # Statistics.
    "Norm",
]
--->
from .dense import Dense
from .my_layer import MyLayer
from .norm import Norm

__all__ = [
    "Dense",  # ours
    "MyLayer",
    # Statistics.
    "Norm",
]
=== first of one a line
from .norm import Norm
from .zed import Zed

__all__ = (
    "Norm",
    "Zed",
)
--->
from .my_layer import MyLayer
from .norm import Norm
from .zed import Zed

__all__ = (
    "MyLayer",
    "Norm",
    "Zed",
)
=== natural order, constants before classes
from .layer2 import Layer2
from .layer10 import EPSILON, Layer10

__all__ = ["EPSILON", "Layer2", "Layer10"]
--->
from .layer2 import Layer2
from .layer10 import EPSILON, Layer10
from .my_layer import MyLayer

__all__ = ["EPSILON", "Layer2", "Layer10", "MyLayer"]
=== a line that grows too long
from .dense import AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA, AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB

__all__ = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB"]
--->
from .dense import AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA, AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB
from .my_layer import MyLayer

__all__ = [
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB",
    "MyLayer",
]
=== a comment after a line that grows too long
from .dense import AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA

__all__ = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]  # what is public what is public here
--->
from .dense import AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
from .my_layer import MyLayer

__all__ = [
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "MyLayer",
]  # what is public what is public here
=== the module exports another name
from .my_layer import Another

__all__ = ["Another"]
--->
from .my_layer import Another, MyLayer

__all__ = ["Another", "MyLayer"]
=== the module exports names, one a line
from .my_layer import (
    Another,
    Third,
)

__all__ = ["Another", "Third"]
--->
from .my_layer import (
    Another,
    MyLayer,
    Third,
)

__all__ = ["Another", "MyLayer", "Third"]
=== the module exports so much that the line grows too long
from .my_layer import AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA  # these are heavy to import

__all__ = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]
--->
from .my_layer import (  # these are heavy to import
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA,
    MyLayer,
)

__all__ = ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "MyLayer"]
=== the module exports another name under an alias
from .my_layer import Another as Other

__all__ = ["Other"]
--->
from .my_layer import Another as Other
from .my_layer import MyLayer

__all__ = ["MyLayer", "Other"]
=== absolute siblings
from keras.layers import Dense
from pkg.layers.norm import Norm

__all__ = ["Dense", "Norm"]
--->
from keras.layers import Dense
from pkg.layers.my_layer import MyLayer
from pkg.layers.norm import Norm

__all__ = ["Dense", "MyLayer", "Norm"]
=== imports of others only
import os

print(os.name)
--->
import os

from .my_layer import MyLayer as MyLayer

print(os.name)
=== imports from the package and its parent
from .. import base
from . import tools

__all__ = ["base", "tools"]
--->
from .. import base
from . import tools
from .my_layer import MyLayer

__all__ = ["MyLayer", "base", "tools"]
=== re-exports by alias
from .dense import Dense as Dense
from .norm import Norm as Norm
--->
from .dense import Dense as Dense
from .my_layer import MyLayer as MyLayer
from .norm import Norm as Norm
=== the module re-exports by alias
from .my_layer import Another as Another
--->
from .my_layer import Another as Another
from .my_layer import MyLayer as MyLayer
=== imports that are used
from .setup import configure

configure()
--->
from .my_layer import MyLayer as MyLayer
from .setup import configure

configure()
=== imports with noqa
from .dense import Dense  # noqa: F401
--->
from .dense import Dense  # noqa: F401
from .my_layer import MyLayer as MyLayer
=== version alone
# Copyright

# Bumped by hand.
__version__ = "1"
--->
# Copyright

from .my_layer import MyLayer as MyLayer

# Bumped by hand.
__version__ = "1"
=== class after a docstring
"""Layers."""


class Base:
    """The base."""
--->
"""Layers."""

from .my_layer import MyLayer as MyLayer


class Base:
    """The base."""
=== class after a comment
# Copyright


# The base.
class Base:
    x = 1
--->
# Copyright

from .my_layer import MyLayer as MyLayer


# The base.
class Base:
    x = 1
=== class after a docstring and a comment apart
"""Layers."""

# Mind the order.


class Base:
    """The base."""
--->
"""Layers."""

from .my_layer import MyLayer as MyLayer

# Mind the order.


class Base:
    """The base."""
=== names that differ early in letter case
from .my_layer import Nab, NBlock

__all__ = ["NBlock", "Nab"]
--->
from .my_layer import MyLayer, Nab, NBlock

__all__ = ["MyLayer", "NBlock", "Nab"]
=== the module exports a constant
from .my_layer import ZERO, Third

__all__ = ["ZERO", "Third"]
--->
from .my_layer import ZERO, MyLayer, Third

__all__ = ["ZERO", "MyLayer", "Third"]
=== imports of siblings above others
from .dense import Dense

try:
    import numpy
except ImportError:
    numpy = None

import abc

__all__ = ["Dense", "abc", "numpy"]
--->
from .dense import Dense
from .my_layer import MyLayer

try:
    import numpy
except ImportError:
    numpy = None

import abc

__all__ = ["Dense", "MyLayer", "abc", "numpy"]
=== __all__ above the imports
"""Layers."""

__all__ = ["Dense"]

from .dense import Dense
--->
"""Layers."""

__all__ = ["Dense", "MyLayer"]

from .dense import Dense
from .my_layer import MyLayer
=== conditional imports between
import abc

try:
    import numpy
except ImportError:
    numpy = None

from .dense import Dense

__all__ = ["Dense", "abc", "numpy"]
--->
import abc

try:
    import numpy
except ImportError:
    numpy = None

from .dense import Dense
from .my_layer import MyLayer

__all__ = ["Dense", "MyLayer", "abc", "numpy"]
=== __all__ that grows later
from . import more
from .dense import Dense

__all__ = ["Dense"]
__all__ += more.__all__
--->
from . import more
from .dense import Dense
from .my_layer import MyLayer

__all__ = ["Dense", "MyLayer"]
__all__ += more.__all__
=== a form feed and a line separator
"""Layers\x0c\u2028."""

__all__ = ["Dense"]

from .dense import Dense
--->
"""Layers\x0c\u2028."""

__all__ = ["Dense", "MyLayer"]

from .dense import Dense
from .my_layer import MyLayer
''')

PRAGMA = "  # type: ignore[attr-defined]  # as it is C"
CASES["a comment for a tool does not count"] = (
    f'from .my_layer import {LONG}{PRAGMA}\n\n__all__ = ["{LONG}"]{PRAGMA}\n',
    f"from .my_layer import {LONG}, MyLayer{PRAGMA}\n\n"
    f'__all__ = ["{LONG}", "MyLayer"]{PRAGMA}\n',
)

# What no formatter has seen: all but the export stays as it was.
UNFORMATTED = cases('''\
=== plain imports without __all__
from .dense import Dense
--->
from .dense import Dense
from .my_layer import MyLayer
=== out of order
from .norm import Norm
from .dense import Dense
__all__ = ['Norm', 'Dense']
--->
from .norm import Norm
from .dense import Dense
from .my_layer import MyLayer
__all__ = ['Norm', 'Dense', 'MyLayer']
=== several a line
from .dense import A, N, Z
__all__ = [
    "A", "N",
    "Z",
]  # public
--->
from .dense import A, N, Z
from .my_layer import MyLayer
__all__ = [
    "A", "MyLayer", "N",
    "Z",
]  # public
=== several a line, first
from .x import Z
__all__ = ["Y",
  "Z"]
--->
from .my_layer import MyLayer
from .x import Z
__all__ = ["MyLayer", "Y",
  "Z"]
=== no comma at the end
from .dense import A
__all__ = [
  "A" # first
]
--->
from .dense import A
from .my_layer import MyLayer
__all__ = [
  "A", # first
  "MyLayer",
]
=== a backslash
from .my_layer import A, \\
    B
__all__ = ['A', 'B']
--->
from .my_layer import A, \\
    B, MyLayer
__all__ = ['A', 'B', 'MyLayer']
=== exported already, but not listed
from .my_layer import MyLayer
__all__ = []
--->
from .my_layer import MyLayer
__all__ = ["MyLayer"]
=== listed already, but not imported
__all__ = ["MyLayer"]
--->
from .my_layer import MyLayer

__all__ = ["MyLayer"]
=== all on one line
"""Layers."""; x = 1
--->
"""Layers."""; x = 1

from .my_layer import MyLayer as MyLayer

=== an invalid escape
"""Layers \\d."""
--->
"""Layers \\d."""

from .my_layer import MyLayer

__all__ = ["MyLayer"]
''')
ALL_CASES = CASES | UNFORMATTED


@pytest.mark.parametrize("case", ALL_CASES)
def test_the_export_is_added_in_its_place(case: str) -> None:
    source, expected = ALL_CASES[case]
    assert export(source) == expected


@pytest.mark.parametrize("case", ALL_CASES)
def test_a_second_time_changes_nothing(case: str) -> None:
    _, expected = ALL_CASES[case]
    assert export(expected) == expected


@pytest.mark.parametrize("case", ALL_CASES)
def test_line_endings_and_mark_are_kept(case: str) -> None:
    source, expected = ALL_CASES[case]
    if "\n" in source:
        source, expected = source.replace("\n", "\r\n"), expected.replace("\n", "\r\n")
    assert export("\ufeff" + source) == "\ufeff" + expected


def test_ruff_has_nothing_to_say(tmp_path: Path) -> None:
    longer = ("my_layer_" + "x" * 60, "MyLayer" + "X" * 60)
    for number, (source, expected) in enumerate(CASES.values()):
        for variant, text in {
            "before": source,
            "after": expected,
            "longer": export(source, *longer),
            "first": export(source, "a", "AA"),
            "second": export(expected, "my_layer", "Another1"),
        }.items():
            path = tmp_path / f"{variant}{number}" / "__init__.py"
            path.parent.mkdir()
            path.write_text(text, encoding="utf-8", newline="")
    for command in (["format", "--diff"], ["check", "--output-format=concise"]):
        done = subprocess.run(
            [RUFF, *command, "--isolated", "--no-cache", tmp_path],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("from .dense import (\n", "no valid Python"),
        ("x = '\0'\n", "no valid Python"),
        ("class MyLayer: pass\n", "another meaning"),
        ("from .dense import MyLayer\n", "another meaning"),
        ("from .dense import Dense as MyLayer\n", "another meaning"),
        ("if 1:\n    from .my_layer import MyLayer\n", "another meaning"),
        ("for MyLayer in (): pass\n", "another meaning"),
        ("__all__ = sorted(['Dense'])\n", "computes __all__"),
        ("from . import x\n__all__ = ['Dense', *x.__all__]\n", "computes __all__"),
        ("from . import x\n__all__ = ['Dense'] + x.__all__\n", "computes __all__"),
        ("if 1:\n    __all__ = ['Dense']\n", "computes __all__"),
        ("__all__ = ['A']\n__all__ = ['B']\n", "computes __all__"),
        ("__all__ = names = ['A']\n", "computes __all__"),
        ("from .dense import __all__\n", "computes __all__"),
        ("__all__ = [\n    'A'\n    , 'Z'\n]\n", "unusual"),
        (f"from .my_layer import {LONG}, {LONG}Z; x = 1\n__all__ = []\n", "unusual"),
    ],
)
def test_what_cannot_be_edited_with_certainty_is_refused(source: str, why: str) -> None:
    with pytest.raises(MplayerError, match=why) as refusal:
        export(source)
    assert "from .my_layer import MyLayer" in str(refusal.value)


@pytest.mark.parametrize("source", ["'Layers.'", "x = 1  # é", "from .a import A"])
def test_a_last_line_without_end_gets_one(source: str) -> None:
    assert export(source) in {export(f"{source}\n"), export(f"{source}\n").strip()}


def test_a_name_inside_a_function_is_no_obstacle() -> None:
    assert "import MyLayer as" in export(
        "def f():\n    MyLayer = 1\n    return MyLayer\n"
    )


NAMES = ["Dense", "Norm", "RMSNorm2D", "GELU", "Éclair", "Layer2", "layer10"]


@st.composite
def sources(draw: st.DrawFn) -> str:
    """Files as people write them, formatted or not."""
    eol = draw(st.sampled_from(["\n", "\r\n"]))
    head = draw(
        st.sampled_from(["", '"""É."""\n', "#!/x\n# é\n", '""" """\nimport os\n'])
    )
    line = draw(
        st.sampled_from(["from .{} import {}\n", "from pkg.layers.{} import {}\n"])
    )
    public = draw(
        st.sampled_from(["", "__all__ = [{}]\n", "__all__ = (\n    {},\n)\n"])
    )
    tail = draw(st.sampled_from(["", "\n\n\nclass Last:\n    pass\n", "x = 1  # é"]))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    imports = "".join(line.format(name.lower(), name) for name in names)
    listed = public.format(", ".join(f"'{name}'" for name in names))
    return (head + imports + listed + tail).replace("\n", eol)


def exported(text: str) -> set[str]:
    names = [
        alias.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert len(names) == len(set(names))
    return set(names)


@given(sources(), st.lists(st.sampled_from([*NAMES, "MyLayer", "A"]), min_size=1))
def test_any_exports_in_any_order(source: str, names: list[str]) -> None:
    text = source
    for name in names:
        text = add_export(text, name.lower(), name, "pkg.layers")
        assert add_export(text, name.lower(), name, "pkg.layers") == text
    assert exported(text) == exported(source) | set(names)
    lost = set(source.split("\n")) - set(text.split("\n"))
    assert all("'" in line for line in lost | {"'"}), "only __all__ may change"
    assert text.count("\r\n") in (0, text.count("\n"))


def without(source: str, module: str = "my_layer", name: str = "MyLayer") -> str:
    return remove_export(source, module, name, "pkg.layers")


def listing(text: str) -> list[str]:
    """What `__all__` names, wherever it is plain enough to be read."""
    for node in ast.parse(text.lstrip("\ufeff")).body:
        if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node.targets[0]):
            return [ast.unparse(item) for item in getattr(node.value, "elts", [])]
    return []


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "case",
    [
        case
        for case, (source, _) in ALL_CASES.items()
        if "my_layer" not in source and "MyLayer" not in source
    ],
)
@pytest.mark.filterwarnings("ignore:.*invalid escape")
def test_what_was_added_is_taken_out(case: str, eol: str, mark: str) -> None:
    source, after = (mark + text.replace("\n", eol) for text in ALL_CASES[case])
    text = without(after)
    assert exported(text.lstrip("\ufeff")) == exported(source.lstrip("\ufeff"))
    assert listing(text) == listing(source)
    assert without(text) == text
    assert text.startswith(mark)
    assert text.count("\r\n") in (0, text.count("\n"))


# What is there, and what stays of it.
REMOVALS = cases("""\
=== never there
from .norm import Norm
--->
from .norm import Norm
=== the like of another module
from .other import MyLayer

__all__ = ["MyLayer"]
--->
from .other import MyLayer

__all__ = ["MyLayer"]
=== alone, as itself
from .my_layer import MyLayer as MyLayer
--->
=== below a docstring
'''Layers.'''

from .my_layer import MyLayer
--->
'''Layers.'''
=== over several lines
from .my_layer import (
    MyLayer,
)
from .norm import Norm
--->
from .norm import Norm
=== absolute
from pkg.layers.my_layer import MyLayer  # noqa: F401
from pkg.layers.norm import Norm
--->
from pkg.layers.norm import Norm
=== first, middle and last in one line
__all__ = ["MyLayer", "A"]
from .my_layer import MyLayer
--->
__all__ = ["A"]
=== tuple
from .my_layer import MyLayer
__all__ = ("A", "MyLayer")
--->
__all__ = ("A",)
=== bare tuple
from .my_layer import MyLayer
__all__ = "A", "MyLayer"
--->
__all__ = ("A",)
=== the only one of a tuple
from .my_layer import MyLayer
__all__ = ("MyLayer",)
--->
__all__ = ()
=== one a line, with comments
from .my_layer import MyLayer
__all__ = [
    # The first ones
    "A",  # a
    "MyLayer",
    # The last ones
    "Z",  # z
]
--->
__all__ = [
    # The first ones
    "A",  # a
    # The last ones
    "Z",  # z
]
=== a comment on a line of two
from .my_layer import MyLayer
__all__ = [
    "A", "MyLayer",  # both
    "Z",
]
--->
__all__ = [
    "A", # both
    "Z",
]
=== last, without a comma, after a comment
from .my_layer import MyLayer
__all__ = ["A",  # a
           "B", "MyLayer"]
--->
__all__ = ["A",  # a
           "B"]
=== last, below a comment, without a comma
from .my_layer import MyLayer
__all__ = ["A",  # a
           "MyLayer"]
--->
__all__ = ["A",  # a
           ]
=== the only one, with a heading
from .my_layer import MyLayer
__all__ = [
    # Layers
    "MyLayer",
]
--->
__all__ = [
    # Layers
]
=== tuple of two, with a heading
from .my_layer import MyLayer
__all__ = (
    # Layers
    "A",
    "MyLayer",
)
--->
__all__ = (
    # Layers
    "A",
)
""")


@pytest.mark.parametrize("case", REMOVALS)
def test_the_export_is_taken_out_and_nothing_else(case: str) -> None:
    source, expected = REMOVALS[case]
    assert without(source) == expected


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("from .my_layer import *\n", "line 1 imports from it otherwise"),
        ("\nfrom .my_layer import MyLayer as M\n", "line 2 imports from it otherwise"),
        ("from .my_layer import MyLayer, helper\n", "line 1 imports from it otherwise"),
        ("if 1:\n    from .my_layer import MyLayer\n", "line 2 imports from it"),
        ("def f():\n    from . import my_layer\n", "line 2 imports from it"),
        ("from .my_layer import MyLayer; x = 1\n", "line 1 holds more than its import"),
        ("x = 1; from .my_layer import MyLayer\n", "line 1 holds more than its import"),
        ("from .my_layer import MyLayer\nx = MyLayer\n", "line 2 uses the class"),
        (
            "from .my_layer import MyLayer\n__all__ = []\n__all__ += ['MyLayer']\n",
            "line 3 uses the class",
        ),
        (
            "from .my_layer import MyLayer\n__all__ = ('MyLayer', # a\n'A')\n",
            "line 1 is unusual",
        ),
        ("from .my_layer import (\n", "no valid Python"),
    ],
)
def test_what_cannot_be_taken_out_with_certainty_is_refused(
    source: str, why: str
) -> None:
    with pytest.raises(MplayerError, match=why) as refusal:
        without(source)
    assert "Take out by hand what it has of .my_layer" in str(refusal.value)


@given(sources(), st.lists(st.sampled_from(["MyLayer", "A", "Zed"]), unique=True))
def test_any_exports_are_taken_out_in_any_order(source: str, names: list[str]) -> None:
    text = source
    for name in names:
        text = export(text, f"own_{name.lower()}", name)
    for name in sorted(names):
        text = without(text, f"own_{name.lower()}", name)
    assert exported(text) == exported(source)
    assert listing(text) == listing(source)
    lost = set(source.split("\n")) - set(text.split("\n"))
    assert not any(line.startswith("from") for line in lost)


@given(sources(), st.sampled_from(NAMES))
def test_what_was_there_before_can_be_taken_out_too(source: str, name: str) -> None:
    if name not in exported(source):
        return
    text = without(source, name.lower(), name)
    assert exported(text) == exported(source) - {name}
    assert listing(text) == [item for item in listing(source) if item != repr(name)]


@pytest.mark.parametrize(
    "computed",
    [
        "__all__ = a.__all__",
        '__all__ = [*a.__all__, "MyLayer"]',
        '__all__ = a.__all__ + ["MyLayer"]',
    ],
)
def test_an_export_by_hand_is_one_also_where_all_is_computed(computed: str) -> None:
    """What the refusal says to add is enough."""
    source = f"from . import a\n\n{computed}\n"
    with pytest.raises(MplayerError, match=r"Add by hand: from \.my_layer import"):
        add_export(source, "my_layer", "MyLayer")
    by_hand = f"from . import a\nfrom .my_layer import MyLayer\n\n{computed}\n"
    assert add_export(by_hand, "my_layer", "MyLayer") == by_hand


def test_beside_a_star_import_the_name_is_marked_as_an_export() -> None:
    source = "from .a import *\n"
    assert "import MyLayer as MyLayer" in add_export(source, "my_layer", "MyLayer")
