"""`place`: where the files of a layer go in folders of every usual shape."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from scaffold.errors import MplayerError
from scaffold.project import place

if TYPE_CHECKING:
    from pathlib import Path

GIT = ".git/HEAD"
MODULE_PATH = '[tool.pytest.ini_options]\npythonpath = ["src"]\n'


def make(root: Path, *files: str, toml: str | None = None) -> Path:
    """Makes empty files, and folders where a name ends with a slash."""
    for name in files:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    if toml is not None:
        (root / "pyproject.toml").write_text(toml, encoding="utf-8")
    return root


class Case(NamedTuple):
    files: tuple[str, ...]
    layer_dir: str = "."
    test_dir: str = "."
    package: str = ""
    init: str | None = None
    packages: tuple[str, ...] = ()
    command: str = "pytest"
    hint: str = ""
    toml: str | None = None
    cwd: str = "."
    flags: tuple[str | None, str | None] = (None, None)


PACKAGE = ("pkg/__init__.py",)
LAYERS = (*PACKAGE, "pkg/layers/__init__.py")
SRC = ("src/pkg/__init__.py", "src/pkg/layers/__init__.py")
FLAT = Case(
    LAYERS, "pkg/layers", "tests/layers", "pkg.layers", "pkg/layers/__init__.py"
)
FLAT = FLAT._replace(command="python -m pytest", toml="")
IN_SRC = FLAT._replace(
    files=SRC,
    layer_dir="src/pkg/layers",
    init="src/pkg/layers/__init__.py",
    command="pytest",
    hint="pip install -e .",
)

CASES = {
    "empty": Case(()),
    "hidden entries alone": Case((GIT, ".venv/")),
    "no package": Case(("README.md", "tests/__init__.py", "docs/__init__.py")),
    "no package, a folder below the root": Case(
        ("data/x",), "data", "data", toml="", cwd="data"
    ),
    "empty folder in a project": Case((*LAYERS, "new/"), cwd="new"),
    "flat": FLAT,
    "flat, from a folder below": FLAT._replace(
        files=(*LAYERS, "docs/x", GIT), cwd="docs", toml=None
    ),
    "flat, no layers yet": FLAT._replace(files=PACKAGE),
    "flat, layers a plain folder": FLAT._replace(files=(*PACKAGE, "pkg/layers/x.py")),
    "flat, tests a package": FLAT._replace(
        files=(*LAYERS, "tests/__init__.py"),
        packages=("tests/layers/__init__.py",),
        command="pytest",
    ),
    "flat, tests mirrored whole": FLAT._replace(
        files=(*LAYERS, "tests/pkg/layers/"), test_dir="tests/pkg/layers"
    ),
    "src": IN_SRC,
    "src, no layers yet": IN_SRC._replace(files=SRC[:1]),
    "src, on pytest's path": IN_SRC._replace(toml=MODULE_PATH, hint=""),
    "src, on pytest's path as text": IN_SRC._replace(
        toml=MODULE_PATH.replace('["src"]', '"lib src"'), hint=""
    ),
    "src, some other tool's odd table": IN_SRC._replace(toml="tool.pytest = 3"),
    "src is the package": FLAT._replace(
        files=("src/__init__.py", "src/models/__init__.py"),
        layer_dir="src/layers",
        package="src.layers",
        init="src/layers/__init__.py",
    ),
    "one of two has layers": FLAT._replace(files=(*LAYERS, "other/__init__.py")),
    "in one of two": FLAT._replace(
        files=(*LAYERS, "other/__init__.py"),
        layer_dir="other/layers",
        package="other.layers",
        init="other/layers/__init__.py",
        cwd="other",
    ),
    "settings": Case(
        ("x",),
        "nets",
        "checks",
        "nets",
        command="python -m pytest",
        toml="[tool.mplayer]\nlayer-dir = 'nets'\ntest-dir = 'checks'",
    ),
    "settings, from an empty folder": Case(
        ("x", "new/"),
        "nets",
        "checks",
        "nets",
        command="python -m pytest",
        toml="[tool.mplayer]\nlayer-dir = 'nets'\ntest-dir = 'checks'",
        cwd="new",
    ),
    "settings, for a package that has lost its __init__.py": FLAT._replace(
        files=(*LAYERS, "pkg/nets/x"),
        layer_dir="pkg/nets",
        test_dir="tests/nets",
        package="pkg.nets",
        init="pkg/nets/__init__.py",
        toml="[tool.mplayer]\nlayer-dir = 'pkg/nets'",
    ),
    "settings, on pytest's path": Case(
        ("x",),
        "src/nets",
        "checks",
        "nets",
        toml="[tool.mplayer]\nlayer-dir = 'src/nets'\ntest-dir = 'checks'\n"
        + MODULE_PATH,
    ),
    "settings for the module alone": Case(
        ("x",), "nets", "nets", toml="[tool.mplayer]\nlayer-dir = 'nets'"
    ),
    "settings for the test alone": FLAT._replace(
        test_dir="checks", toml="[tool.mplayer]\ntest-dir = 'checks'"
    ),
    "flags before settings": Case(
        ("a/x",),
        "a/b",
        "c",
        "a.b",
        command="python -m pytest",
        toml="[tool.mplayer]\nlayer-dir = 'nets'\ntest-dir = 'checks'",
        cwd="a",
        flags=("b", "../c"),
    ),
    "flag into a package": FLAT._replace(
        files=PACKAGE,
        layer_dir="pkg/a/b",
        test_dir="tests/a/b",
        package="pkg.a.b",
        init="pkg/a/b/__init__.py",
        packages=("pkg/a/__init__.py",),
        flags=("pkg/a/b", None),
    ),
    "flag to the package itself": FLAT._replace(
        files=PACKAGE,
        layer_dir="pkg",
        test_dir="tests",
        package="pkg",
        init="pkg/__init__.py",
        flags=("pkg", None),
    ),
    "flag to a plain folder of a package": Case(
        (*PACKAGE, "pkg/a/"), "pkg/a", "pkg/a", toml="", flags=("pkg/a", None)
    ),
    "flag, tests in the package": FLAT._replace(
        test_dir="pkg/layers", command="pytest", flags=(None, "pkg/layers")
    ),
    "flag to the folder itself": Case(("x",), toml="", flags=(".", None)),
}


@pytest.mark.parametrize("name", CASES)
def test_files_go_where_the_project_has_their_like(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    make(tmp_path, *case.files, toml=case.toml)
    found = place(tmp_path / case.cwd, *case.flags)
    root = tmp_path / (case.cwd if name.startswith("empty folder") else ".")
    assert found.root == root
    assert (
        str(found.layer_dir),
        str(found.test_dir),
        found.package,
        found.init and str(found.init),
        tuple(map(str, found.packages)),
        found.command,
        found.command_hint,
    ) == case[1:8]
    assert found.reason.endswith(".")


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if not case.hint]
)
def test_the_test_imports_the_module(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    make(tmp_path, *case.files, toml=case.toml)
    found = place(tmp_path / case.cwd, *case.flags)
    for path in (found.init, *found.packages):
        if path:
            make(found.root, str(path))
    make(found.root, f"{found.layer_dir}/my_layer.py")
    origin = f"{found.package}.my_layer".lstrip(".")
    test = make(found.root, f"{found.test_dir}/") / found.test_dir / "test_my_layer.py"
    test.write_text(f"import {origin}\n\ndef test(): pass\n", encoding="utf-8")
    # The command says whether the root is on the path, as `python -m` puts it there.
    entry = ["-m", "pytest"]
    if found.command == "pytest":
        entry = ["-c", "import sys, pytest; sys.path.pop(0); sys.exit(pytest.main())"]
    done = subprocess.run(
        [sys.executable, *entry, "-q", str(found.test_dir / "test_my_layer.py")],
        cwd=found.root,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_reason_names_what_decided(tmp_path: Path) -> None:
    make(tmp_path, *LAYERS, toml="[tool.mplayer]\ntest-dir = 'checks'")
    assert "'pkg/layers'" in place(tmp_path).reason
    assert "--layer-dir" in place(tmp_path, "x").reason
    make(tmp_path, toml="[tool.mplayer]\nlayer-dir = 'x'")
    assert "[tool.mplayer]" in place(tmp_path).reason


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[tool.mplayer", ["pyproject.toml", "cannot be read"]),
        ("x = '\udc80'", ["pyproject.toml", "cannot be read"]),
        ("tool.mplayer = 3", ["pyproject.toml", "[tool.mplayer]", "3"]),
        ("[tool.mplayer]\nlayers-dir = 'x'", ["layers-dir", "mean 'layer-dir'"]),
        ("[tool.mplayer]\ndialect = 'jax'", ["dialect must be tf or keras", "'jax'"]),
        ("[tool.mplayer]\ntest-dir = ['x']", ["pyproject.toml", "test-dir", "['x']"]),
        ("[tool.mplayer]\nlayer-dir = '/x'", ["pyproject.toml", "layer-dir", "'/x'"]),
        ("[tool.mplayer]\nlayer-dir = 'a/../../x'", ["pyproject.toml", "a/../../x"]),
        ("[tool.mplayer]\nlayer-dir = ''", ["pyproject.toml", "layer-dir", "''"]),
        ('[tool.mplayer]\nlayer-dir = "\\u0000"', ["pyproject.toml", "layer-dir"]),
        ("[tool.mplayer]\nlayer-dir = '.mplayer'", ["'.mplayer'", "their own files"]),
        ("[tool.mplayer]\ntest-dir = '.git/x'", ["'.git/x'", "their own files"]),
        ("[tool.mplayer]\nlayer-dir = 'a-b'\ntest-dir = 'c'", ["a-b", "--layer-dir"]),
        ("[tool.mplayer]\nlayer-dir = 'if'\ntest-dir = 'c'", ["if", "--layer-dir"]),
    ],
)
def test_a_bad_setting_is_named(tmp_path: Path, toml: str, words: list[str]) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(toml.encode("utf-8", "surrogateescape"))
    with pytest.raises(MplayerError) as refusal:
        place(tmp_path)
    assert [word for word in words if word not in str(refusal.value)] == []


@pytest.mark.parametrize("flag", ["..", "a/../../x", "/x", "", "x" * 300])
@pytest.mark.parametrize("name", ["--layer-dir", "--test-dir"])
def test_a_bad_flag_is_named(tmp_path: Path, name: str, flag: str) -> None:
    make(tmp_path, "x")
    flags = (flag, None) if name == "--layer-dir" else (None, flag)
    with pytest.raises(MplayerError) as refusal:
        place(tmp_path, *flags)
    assert name in str(refusal.value)
    assert flag in str(refusal.value)


def test_a_flag_may_be_absolute_and_lead_through_a_link(tmp_path: Path) -> None:
    root = make(tmp_path / "root", "x")
    (root / "link").symlink_to(make(tmp_path, "elsewhere/"))
    assert str(place(root, str(root / "link")).layer_dir) == "link"


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (("a/__init__.py", "b/__init__.py"), ["'a'", "'b'"]),
        (("a/__init__.py", "src/b/__init__.py"), ["'a'", "'src/b'"]),
        (
            (
                *("a/__init__.py", "a/layers/__init__.py", "src/b/__init__.py"),
                *("src/b/layers/__init__.py", "c/__init__.py"),
            ),
            ["'a/layers'", "'src/b/layers'"],
        ),
    ],
)
def test_several_packages_are_listed(
    tmp_path: Path, files: tuple[str, ...], names: list[str]
) -> None:
    make(tmp_path, *files)
    with pytest.raises(MplayerError, match="--layer-dir") as refusal:
        place(tmp_path)
    assert f"{', '.join(names)}." in str(refusal.value)


def test_nothing_is_written(tmp_path: Path) -> None:
    make(tmp_path, *PACKAGE)
    before = sorted(tmp_path.rglob("*"))
    place(tmp_path, "pkg/new", "tests/new")
    assert sorted(tmp_path.rglob("*")) == before
