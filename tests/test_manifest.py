"""`mplayer new --from layers.toml`: many layers, or all that is wrong with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from test_new import mplayer, tree

import scaffold
from scaffold.kinds import kind_names
from scaffold.names import camel_case

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
[[layer]]
name = "MyLayer"
weights = "w,b"

[[layer]]
name = "Gain"
weights = "gamma"
with = "constraints"
doc = "Gains."

[[layer]]
name = "Busy"
kind = "dense"
weights = "kernel[in,units]=he_normal, bias[units]"
arguments = ["units:int=8", "rate:float=0.5"]
call = "(inputs @ kernel + bias) * rate"
"""


def test_it_writes_what_single_runs_write(tmp_path: Path) -> None:
    many, single = tmp_path / "many", tmp_path / "single"
    for root in (many, single):
        (root / "src/acme").mkdir(parents=True)
        (root / "src/acme/__init__.py").write_text("")
        (root / "pyproject.toml").write_text("")
    (many / "layers.toml").write_text(GOOD)
    run = mplayer("new", "--from", "layers.toml", cwd=many)
    assert run.returncode == 0, run.stderr
    assert "Run the matrix:  pytest tests/layers" in run.stderr
    (many / "layers.toml").unlink()
    for command in (
        ["MyLayer", "--weights", "w,b"],
        ["Gain", "--weights", "gamma", "--with", "constraints", "--doc", "Gains."],
        [
            *("Busy", "--kind", "dense", "--arg", "units:int=8"),
            *("--weights", "kernel[in,units]=he_normal, bias[units]"),
            *("--arg", "rate:float=0.5", "--call", "(inputs @ kernel + bias) * rate"),
        ],
    ):
        assert mplayer("new", *command, cwd=single).returncode == 0
    assert tree(many) == tree(single)
    for name in ("MyLayer", "Gain", "Busy"):
        assert mplayer("remove", name, cwd=many).returncode == 0
    assert {path for path in tree(many) if not path.endswith("__init__.py")} == {
        "pyproject.toml"
    }


def test_every_kind_comes_from_a_manifest(tmp_path: Path) -> None:
    names = [f"Kind{camel_case(kind)}" for kind in kind_names()]
    text = "".join(
        f'[[layer]]\nname = "{name}"\nkind = "{kind}"\n'
        for name, kind in zip(names, kind_names(), strict=True)
    )
    (tmp_path / "layers.toml").write_text(text)
    run = mplayer("new", "--from", "layers.toml", "--json", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    files = json.loads(run.stdout)["files"]
    assert len(files) == 5 * len(names)


def test_all_problems_are_told_at_once_at_their_lines(tmp_path: Path) -> None:
    (tmp_path / "layers.toml").write_text(
        """\
other = 1

[[layer]]
name = "MyLayer"
weights = "weights"

[[layer]]
weights = "w"

[[layer]]
name = "class"

[[layer]]
name = "Typo"
wieghts = "w"

[[layer]]
name = "Wrong"
weights = ["w"]

[[layer]]
name = "Fine"

[[layer]]
name = "Fine"

[[layer]]
name = "Call"
weights = "w,b"
call = "inputs @"

[[layer]]
name = "Args"
arguments = ["units:integer"]

[[layer]]
name = "Kind"
kind = "desne"

[[layer]]
name = "Many"
arguments = ["units:int=a", "rate:flot=1"]
with = "foo"
dialect = "torch"

[[layer]]
nmae = "Keys"
wieghts = "w"
"""
    )
    run = mplayer("new", "--from", "layers.toml", cwd=tmp_path)
    assert run.returncode == 2
    told = run.stderr.removeprefix("mplayer: ").splitlines()
    told = [line for line in told if line.startswith("layers.toml")]
    for line, start in zip(
        told,
        (
            "layers.toml:1: there is no key 'other'",
            "layers.toml:5: MyLayer: --weights: 'weights' is a name",
            "layers.toml:7: the layer has no name",
            "layers.toml:11: class: NAME: 'class' is a word",
            "layers.toml:15: Typo: there is no key 'wieghts'",
            "layers.toml:19: Wrong: weights must be a string",
            "layers.toml:25: Fine: this layer and the one at line 22",
            "layers.toml:30: Call: --call: ",
            "layers.toml:34: Args: --arg: 'units:integer'",
            "layers.toml:38: Kind: --kind: there is no kind 'desne'",
            "layers.toml:44: Many: --dialect: there is no dialect 'torch'",
            "layers.toml:42: Many: --arg: 'a' is not an integer",
            "layers.toml:42: Many: --arg: 'rate:flot=1' has the unknown type",
            "layers.toml:43: Many: --with: there is no option 'foo'",
            "layers.toml:47: there is no key 'nmae'",
            "layers.toml:48: there is no key 'wieghts'",
            "layers.toml:46: the layer has no name",
        ),
        strict=True,
    ):
        assert line.startswith(start)
    assert [*tree(tmp_path)] == ["layers.toml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no layer"),
        ("layer = 1", "there is no layer"),
        ("[[layer]", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_manifest(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "layers.toml").write_text(text)
    run = mplayer("new", "--from", "layers.toml", cwd=tmp_path)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_from_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "layers.toml").write_text(GOOD)
    run = mplayer("new", "MyLayer", "--from", "layers.toml", cwd=tmp_path)
    assert run.returncode == 2
    assert "Leave out NAME" in run.stderr
    assert mplayer("new", cwd=tmp_path).returncode == 2


def test_one_conflict_keeps_all_from_being_written(tmp_path: Path) -> None:
    (tmp_path / "layers.toml").write_text(GOOD)
    (tmp_path / "gain.py").write_text("mine\n")
    before = tree(tmp_path)
    run = mplayer("new", "--from", "layers.toml", cwd=tmp_path)
    assert run.returncode == 1
    assert "'gain.py' exists with other contents" in run.stderr
    assert tree(tmp_path) == before


def test_python_has_the_same(tmp_path: Path) -> None:
    mplayer("new", "MyLayer", "--weights", "w,b", cwd=tmp_path)
    spec = scaffold.parse("MyLayer", weights="w,b")
    assert isinstance(spec, scaffold.LayerSpec)
    texts = scaffold.render(spec)
    assert texts.module == (tmp_path / "my_layer.py").read_text("utf-8")
    assert texts.test == (tmp_path / "test_my_layer.py").read_text("utf-8")
    with pytest.raises(scaffold.MplayerError, match="'weights' is a name"):
        scaffold.parse("MyLayer", weights="weights")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        scaffold.nothing  # noqa: B018
    assert {*scaffold.__all__} - {"__version__"} == {*scaffold._HOMES}


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "layers.toml").write_text('\ufeff[[layer]]\nname = "One"\n', "utf-8")
    assert mplayer("new", "--from", "layers.toml", cwd=tmp_path).returncode == 0
    assert (tmp_path / "one.py").exists()
