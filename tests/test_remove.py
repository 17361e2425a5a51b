"""`mplayer remove`: what `mplayer new` has written, and nothing else, goes."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest
from test_publish import snapshot
from typer.testing import CliRunner

from scaffold.cli import app

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = '[project]\nname = "acme"\n'
LAYERS = {
    "pyproject.toml": PROJECT,
    "src/acme/__init__.py": "",
    "src/acme/layers/zeta.py": "class Zeta: ...\n",
    "tests/": "",
}
INIT = "src/acme/layers/__init__.py"
NAMES = [f"A{letter}LongNameOfALayer" for letter in "BCD"]


class Layout(NamedTuple):
    """Files of a project (`x/` is a folder), and more options of `new`."""

    files: dict[str, str]
    options: tuple[str, ...] = ()


LAYOUTS = {
    "empty folder": Layout({}),
    "folder of scripts": Layout({"train.py": "", "tests/": ""}),
    "flat package": Layout({"pyproject.toml": PROJECT, "acme/__init__.py": ""}),
    "src layout without layers": Layout(
        {"pyproject.toml": PROJECT, "src/acme/__init__.py": "x = 1\n"}
    ),
    "src layout with plain layers folder": Layout(
        {"pyproject.toml": PROJECT, "src/acme/__init__.py": "", "src/acme/layers/": ""}
    ),
    "settings": Layout(
        {
            "pyproject.toml": '[tool.mplayer]\nlayer-dir = "a/b"\ntest-dir = "c/d/e"\n',
            "a/": "",
        }
    ),
    "new nested folders": Layout(
        {"pyproject.toml": PROJECT, "acme/__init__.py": ""},
        ("--layer-dir", "acme/x/y/z", "--test-dir", "checks/x"),
    ),
    "tests that are packages": Layout(
        {**LAYERS, INIT: "", "tests/__init__.py": "", "tests/layers/": ""}
    ),
    "empty __init__": Layout({**LAYERS, INIT: ""}),
    "blank __init__": Layout({**LAYERS, INIT: "\n\n"}),
    "docstring only": Layout({**LAYERS, INIT: '"""Layers."""\n'}),
    "comment only, no end": Layout({**LAYERS, INIT: "# Layers."}),
    "exports with __all__": Layout(
        {**LAYERS, INIT: 'from .zeta import Zeta\n\n__all__ = ["Zeta"]\n'}
    ),
    "exports without __all__": Layout(
        {**LAYERS, INIT: "from .zeta import Zeta as Zeta\n"}
    ),
    "a list that becomes several lines": Layout(
        {
            **LAYERS,
            INIT: f"from .zeta import {', '.join(NAMES)}\n\n"
            f"__all__ = [{', '.join(map(repr, NAMES))}]\n",
        }
    ),
    "several lines": Layout(
        {
            **LAYERS,
            INIT: 'from .zeta import Zeta\n\n__all__ = [\n    "Zeta",  # z\n]\n',
        }
    ),
    "CRLF": Layout(
        {**LAYERS, INIT: 'from .zeta import Zeta\r\n\r\n__all__ = ["Zeta"]\r\n'}
    ),
    "mixed line endings": Layout(
        {**LAYERS, INIT: '"""L."""\n\r\nfrom .zeta import Zeta\r\nx = Zeta\n\n'}
    ),
    "no trailing newline": Layout(
        {**LAYERS, INIT: 'from .zeta import Zeta\n\n__all__ = ["Zeta"]'}
    ),
    "mark": Layout({**LAYERS, INIT: "\ufefffrom .zeta import Zeta as Zeta\n"}),
    "form feed and U+2028": Layout(
        {**LAYERS, INIT: "'''a\u2028b'''\n\x0c\nfrom .zeta import Zeta as Zeta\n"}
    ),
}


def lay_out(root: Path, layout: Layout) -> dict[str, object]:
    for name, text in layout.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(text.encode())
    for path in root.rglob("__init__.py"):
        path.chmod(0o640)
    return snapshot(root)


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done
    return done.exit_code, done.stdout, done.stderr


def new(name: str = "MyLayer", *options: str) -> None:
    code, _, said = run("new", name, "--weights", "w,b", *options)
    assert code == 0, said


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", LAYOUTS)
def test_all_is_as_it_was_before(root: Path, name: str) -> None:
    layout = LAYOUTS[name]
    before = lay_out(root, layout)
    new("MyLayer", *layout.options)
    assert snapshot(root) != before
    code, out, said = run("remove", "MyLayer")
    assert (code, said) == (0, "")
    assert "removed  " in out
    assert snapshot(root) == before


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_last_of_two_takes_all_away(root: Path, name: str) -> None:
    layout = LAYOUTS[name]
    before = lay_out(root, layout)
    new("MyLayer", *layout.options)
    one = snapshot(root)
    new("Other", *layout.options)
    assert run("remove", "Other")[0] == 0
    assert snapshot(root) == one
    assert run("remove", "MyLayer")[0] == 0
    assert snapshot(root) == before


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_first_of_two_leaves_the_other_whole(root: Path, name: str) -> None:
    layout = LAYOUTS[name]
    before = lay_out(root, layout)
    new("MyLayer", *layout.options)
    new("Other", *layout.options)
    both = snapshot(root)
    assert run("remove", "MyLayer")[0] == 0
    left = snapshot(root)
    assert {path: both[path] for path in left if "__init__" not in path} == {
        path: entry for path, entry in left.items() if "__init__" not in path
    }
    assert {p for p in both if "my_layer" in p} == both.keys() - left.keys()
    assert run("update", "--check")[0] == 0
    assert run("remove", "Other")[0] == 0
    # By then the `__init__.py` is no longer as the record has it: it exports the same.
    after = snapshot(root)
    assert after.keys() == before.keys()
    assert {p for p in after if after[p] != before[p]} <= {INIT}
    for path in root.rglob("__init__.py"):
        assert "Other" not in path.read_text("utf-8")
        assert "MyLayer" not in path.read_text("utf-8")


def test_folders_that_were_there_stay(root: Path) -> None:
    (root / "mine/empty").mkdir(parents=True)
    before = snapshot(root)
    new("MyLayer", "--layer-dir", "mine/empty", "--test-dir", "mine")
    assert run("remove", "MyLayer")[0] == 0
    assert snapshot(root) == before


def test_what_the_user_put_beside_it_stays(root: Path) -> None:
    lay_out(root, LAYOUTS["src layout without layers"])
    new()
    (root / "tests/conftest.py").write_text("")
    (root / INIT).write_text((root / INIT).read_text() + "\nLIMIT = 3\n")
    assert run("remove", "MyLayer")[0] == 0
    assert (root / "tests/conftest.py").exists()
    assert "LIMIT = 3\n" in (root / INIT).read_text()
    assert "MyLayer" not in (root / INIT).read_text()


def test_what_python_compiled_goes_too(root: Path) -> None:
    before = lay_out(root, LAYOUTS["src layout without layers"])
    new()
    for path in [*root.rglob("*my_layer.py"), root / INIT]:
        py_compile.compile(str(path), doraise=True)
    assert len([*root.rglob("*.pyc")]) == 3
    assert run("remove", "MyLayer")[0] == 0
    assert snapshot(root) == before


@pytest.mark.parametrize("edited", ["my_layer.py", "test_my_layer.py"])
def test_an_edited_file_is_a_conflict(root: Path, edited: str) -> None:
    new()
    path = root / edited
    path.write_text("# mine\n" + path.read_text())
    before = snapshot(root)
    code, out, said = run("remove", "MyLayer")
    assert code == 1
    assert f"conflict      {edited}" in out
    assert f"'{edited}' has been edited since; nothing was removed" in said
    assert "--force" in said
    assert snapshot(root) == before
    assert run("remove", "MyLayer", "--force")[0] == 0
    assert snapshot(root) == {}


def test_other_line_endings_are_no_edit(root: Path) -> None:
    new()
    for path in [*root.glob("*.py"), *root.glob(".mplayer/*")]:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert run("remove", "MyLayer")[0] == 0
    assert snapshot(root) == {}


def test_files_that_are_gone_are_no_obstacle(root: Path) -> None:
    new()
    (root / "my_layer.py").unlink()
    (root / ".mplayer/my_layer.test.txt").unlink()
    assert run("remove", "MyLayer")[0] == 0
    assert snapshot(root) == {}


def test_an_export_in_use_is_refused_with_its_line(root: Path) -> None:
    lay_out(root, LAYOUTS["exports with __all__"])
    new()
    path = root / INIT
    path.write_text(path.read_text() + "\nDEFAULT = MyLayer\n")
    before = snapshot(root)
    code, out, said = run("remove", "MyLayer")
    assert (code, out) == (2, "")
    assert f"'{INIT}'" in said
    assert "line 6 uses the class" in said
    assert snapshot(root) == before
    path.write_text(path.read_text().replace("\nDEFAULT = MyLayer\n", ""))
    assert run("remove", "MyLayer")[0] == 0


def test_an_export_made_by_hand_goes_too(root: Path) -> None:
    lay_out(root, LAYOUTS["exports with __all__"])
    new()
    (root / INIT).write_text("from .my_layer import MyLayer as MyLayer\nx = 1\n")
    assert run("remove", "MyLayer")[0] == 0
    assert (root / INIT).read_text() == "x = 1\n"


def test_an_export_taken_out_by_hand_is_no_obstacle(root: Path) -> None:
    lay_out(root, LAYOUTS["exports with __all__"])
    new()
    (root / INIT).write_text("x = 1\n")
    assert run("remove", "MyLayer")[0] == 0
    assert (root / INIT).read_text() == "x = 1\n"


@pytest.mark.parametrize("view", ["--dry-run", "--diff"])
def test_views_write_nothing(root: Path, view: str) -> None:
    lay_out(root, LAYOUTS["exports with __all__"])
    new()
    before = snapshot(root)
    code, out, _ = run("remove", "MyLayer", view)
    assert code == 0
    assert "my_layer.py" in out
    assert "would remove" in out or "deleted file" in out
    assert snapshot(root) == before


def test_the_diff_is_a_patch_that_git_applies(root: Path) -> None:
    lay_out(root, LAYOUTS["no trailing newline"])
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    new()
    _, patch, _ = run("remove", "MyLayer", "--diff")
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True, cwd=root)
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == before


def test_json_reports_the_same_plan(root: Path) -> None:
    new()
    planned = json.loads(run("remove", "MyLayer", "--json", "--dry-run")[1])
    assert snapshot(root)
    done = json.loads(run("remove", "MyLayer", "--json")[1])
    assert snapshot(root) == {}
    assert (planned.pop("written"), done.pop("written")) == (False, True)
    assert planned == done
    assert {file["status"] for file in done["files"]} == {"delete"}
    assert len(done["files"]) == 5


def test_a_layer_can_be_named_by_its_module_and_from_below(root: Path) -> None:
    before = lay_out(root, LAYOUTS["exports with __all__"])
    new()
    os.chdir(root / "tests")
    assert run("remove", "src/acme/layers/my_layer.py")[0] == 0
    assert snapshot(root) == before


def test_an_unknown_name_is_an_error_that_teaches(root: Path) -> None:
    new()
    before = snapshot(root)
    code, out, said = run("remove", "MyLayr")
    assert (code, out) == (2, "")
    assert "Did you mean 'MyLayer'?" in said
    assert snapshot(root) == before


def test_where_nothing_was_generated_it_says_so(root: Path) -> None:
    (root / "mine.py").write_text("")
    code, out, said = run("remove", "MyLayer")
    assert (code, out) == (2, "")
    assert "hold no '.mplayer'" in said
    assert [*snapshot(root)] == ["mine.py"]


def move(root: Path, old: str, new: str) -> None:
    (root / new).parent.mkdir(parents=True, exist_ok=True)
    (root / old).rename(root / new)


@pytest.mark.parametrize(
    "moves",
    [
        {"my_layer.py": "layers/mine.py"},
        {"test_my_layer.py": "tests/test_mine.py"},
        {"my_layer.py": "a/b.py", "test_my_layer.py": "a/test_b.py"},
    ],
)
def test_files_that_were_moved_go_too(root: Path, moves: dict[str, str]) -> None:
    new()
    for old, to in moves.items():
        move(root, old, to)
    assert run("remove", "MyLayer")[0] == 0
    assert not [path for path in root.rglob("*") if path.is_file()]


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_moved_file_that_was_edited_stays_and_is_told(
    root: Path, force: list[str]
) -> None:
    new()
    move(root, "my_layer.py", "mine.py")
    (root / "mine.py").write_text("# mine\n" + (root / "mine.py").read_text())
    code, _, said = run("remove", "MyLayer", *force)
    assert code == 1
    assert "'mine.py' holds MyLayer too, and stays" in said
    assert [*snapshot(root)] == ["mine.py"]


def test_copies_of_a_moved_file_stay_and_are_told(root: Path) -> None:
    new()
    for copy in ("one.py", "two.py"):
        (root / copy).write_text((root / "my_layer.py").read_text())
    (root / "my_layer.py").unlink()
    code, _, said = run("remove", "MyLayer")
    assert code == 1
    assert "'one.py' holds MyLayer too" in said
    assert "'two.py' holds MyLayer too" in said
    assert [*snapshot(root)] == ["one.py", "two.py"]


@pytest.mark.parametrize(
    ("line", "number"),
    [("DEFAULT = MyLayer\n", 6), ("from acme.layers.sub.mine import MyLayer\n", 5)],
)
def test_what_still_names_the_class_is_told(root: Path, line: str, number: int) -> None:
    lay_out(root, LAYOUTS["exports with __all__"])
    new()
    path = root / INIT
    path.write_text(f"{path.read_text()}\n{line}")
    code, _, said = run("remove", "MyLayer", "--force")
    assert code == 1
    assert f"line {number}, still names MyLayer" in said
    assert line in path.read_text()
    assert not (root / "src/acme/layers/my_layer.py").exists()


def test_a_file_of_another_layer_is_never_taken_for_a_moved_one(root: Path) -> None:
    new("MyLayer", "--layer-dir", "a", "--test-dir", "a")
    new("MyLayer", "--layer-dir", "b", "--test-dir", "b")
    before = snapshot(root / "b")
    (root / "a/my_layer.py").unlink()
    (root / "a/test_my_layer.py").unlink()
    assert run("remove", "a/my_layer.py")[0] == 0
    assert snapshot(root / "b") == before


@pytest.mark.parametrize("sign", [".git", ".mplayer", "pyvenv.cfg"])
@pytest.mark.parametrize("command", ["remove", "update"])
def test_another_project_inside_is_not_looked_into(
    root: Path, command: str, sign: str
) -> None:
    """Its files hold the same text, and are not those that were moved."""
    new("MyLayer", "--layer-dir", "a", "--test-dir", "a")
    inner = root / "inner"
    shutil.copytree(root / "a", inner)
    (inner / sign).mkdir()
    before = snapshot(inner)
    (root / "a/my_layer.py").unlink()
    (root / "a/test_my_layer.py").unlink()
    options = ("--weights", "kernel,bias") if command == "update" else ()
    run(command, "MyLayer", *options)
    assert snapshot(inner) == before


def test_the_folder_where_one_stands_may_go(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new("MyLayer", "--layer-dir", "deep/x", "--test-dir", "deep/x")
    monkeypatch.chdir(root / "deep/x")
    code, out, _ = run("remove", "MyLayer")
    assert code == 0
    assert "removed" in out
    assert not (root / "deep").exists()
