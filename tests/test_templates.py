"""A team's own templates: over ours, beside ours, in a package, and in a sandbox."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from test_new import mplayer, tree

from scaffold.kinds import templates_dir

if TYPE_CHECKING:
    from pathlib import Path

OURS = templates_dir() / "layer"
KIND = (OURS / "kinds" / "scale" / "kind.toml").read_text("utf-8")


def put(folder: Path, path: str, text: str) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a folder of templates that holds a kind of its own."""
    root = tmp_path / "project"
    put(root, "pyproject.toml", '[tool.mplayer]\ntemplates = "house"\n')
    put(root, "house/layer/kinds/gain/kind.toml", KIND.replace("gamma", "loudness"))
    put(
        root,
        "house/layer/kinds/gain/layer.py.jinja",
        '{% extends "layer.py.jinja" %}\n',
    )
    return root


def test_a_kind_joins_the_catalogue(project: Path) -> None:
    listed = mplayer("kinds", cwd=project).stdout.split()
    assert {"dense", "scale", "gain"} <= {*listed}
    run = mplayer("new", "Loud", "--kind", "gain", "--weights", "loudness", cwd=project)
    assert run.returncode == 0, run.stderr
    assert "inputs * loudness" in (project / "loud.py").read_text("utf-8")
    assert mplayer("update", "--check", cwd=project).returncode == 0


def test_a_template_stands_for_ours(project: Path) -> None:
    text = (OURS / "layer.py.jinja").read_text("utf-8")
    put(project, "house/layer/layer.py.jinja", f"# The house's own.\n{text}")
    assert mplayer("new", "MyLayer", "--weights", "w,b", cwd=project).returncode == 0
    assert (project / "my_layer.py").read_text("utf-8").startswith("# The house's own.")
    # What the folder does not have is ours still.
    assert "law_01" in (project / "test_my_layer.py").read_text("utf-8")


def test_a_kind_of_ours_can_be_replaced(project: Path) -> None:
    run = mplayer("kinds", "--eject", "dense", cwd=project)
    assert run.returncode == 0, run.stderr
    folder = project / "house" / "layer" / "kinds" / "dense"
    assert tree(folder) == tree(OURS / "kinds" / "dense")
    toml = folder / "kind.toml"
    toml.write_text(toml.read_text("utf-8").replace("glorot_uniform", "he_normal"))
    assert mplayer("new", "MyLayer", "--weights", "w,b", cwd=project).returncode == 0
    assert "he_normal" in (project / "my_layer.py").read_text("utf-8")


def test_a_flag_goes_before_the_setting(project: Path) -> None:
    shutil.move(project / "house", project / "elsewhere")
    command = ["new", "Loud", "--kind", "gain", "--weights", "loudness"]
    refused = mplayer(*command, cwd=project)
    assert refused.returncode == 2
    assert "holds no folder 'layer'" in refused.stderr
    assert mplayer(*command, "--templates", "elsewhere", cwd=project).returncode == 0


def test_ejecting_twice_overwrites_nothing(project: Path) -> None:
    mplayer("kinds", "--eject", "dense", cwd=project)
    file = project / "house/layer/kinds/dense/kind.toml"
    file.write_text("mine\n")
    run = mplayer("kinds", "--eject", "dense", cwd=project)
    assert run.returncode == 1
    assert file.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["--eject", "desne"], "there is no kind 'desne'"),
        (["--eject", "dense", "--templates", "../out"], "lies outside the project"),
        (["desne"], "Did you mean 'dense'?"),
        (["--templates", "nowhere"], "holds no folder 'layer'"),
    ],
)
def test_kinds_refuses(command: list[str], message: str, project: Path) -> None:
    before = tree(project)
    run = mplayer("kinds", *command, cwd=project)
    assert run.returncode == 2
    assert message in run.stderr
    assert tree(project) == before


def test_ejecting_nowhere_is_refused(tmp_path: Path) -> None:
    run = mplayer("kinds", "--eject", "dense", cwd=tmp_path)
    assert run.returncode == 2
    assert "--templates templates" in run.stderr


BAD_TEMPLATES = {
    "an undefined name": ("{{ nothing.here }}", "'nothing' is undefined"),
    "a syntax error": ("{% if %}", "TemplateSyntaxError"),
    "a loop without end": ("{% for i in range(10 ** 9) %}{% endfor %}", "Range"),
    "a way to Python": ("{{ spec.__class__.__mro__ }}", "SecurityError"),
    "a changed value": ("{{ trainable.append(1) }}", "SecurityError"),
    "a division": ("{{ 1 // 0 }}", "ZeroDivisionError"),
    "a file outside": ("{% include '../../../secret' %}", "TemplateNotFound"),
    "no Python": ("def (", "would be no valid Python"),
}


@pytest.mark.parametrize("case", BAD_TEMPLATES)
def test_a_bad_template_writes_nothing(case: str, project: Path) -> None:
    text, message = BAD_TEMPLATES[case]
    put(project, "secret", "secret")
    put(project, "house/layer/kinds/gain/layer.py.jinja", f"\n{text}\n")
    before = tree(project)
    run = mplayer("new", "Loud", "--kind", "gain", "--weights", "loudness", cwd=project)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    if message not in ("TemplateNotFound", "would be no valid Python"):
        assert "kinds/gain/layer.py.jinja', line 2" in run.stderr
    assert tree(project) == before


BAD_KINDS = {
    "an unknown key": ('sumary = "x"\n' + KIND, "no key 'sumary'", "'summary'"),
    "a missing key": (KIND.replace("hazard =", "hazzard ="), "no key 'hazzard'", ""),
    "a wrong type": (KIND.replace("large = 300.0", 'large = "x"'), "large must be", ""),
    "no roles": (KIND.split("[[roles]]")[0], "at least one [[roles]]", ""),
    "a role's key": (KIND.replace("use =", "uses ="), "roles: there is no key", "use"),
    "a use of something else": (
        KIND.replace('"{x} * {name}"', '"{y} * {name}"'),
        "roles: use must be written as in '{x} @ {name}'",
        "'{y} * {name}'",
    ),
    "a use of an attribute": (KIND.replace("{x} *", "{x.__class__} *"), "use must", ""),
    "a use by place": (KIND.replace("{x} *", "{0} *"), "use must", ""),
    "an open brace": (KIND.replace("{x} *", "{x *"), "use must", ""),
    "a shape": (KIND.replace('shape = "[in]"', 'shape = "[in"'), "shape must", "'[in'"),
    "an initializer": (
        KIND.replace('initializer = "ones"', 'initializer = "ones(("'),
        "initializer must be written as in 'glorot_uniform'",
        "'ones(('",
    ),
    "no TOML": ("= 1", "cannot be read", ""),
}


@pytest.mark.parametrize("case", BAD_KINDS)
def test_a_bad_kind_is_named(case: str, project: Path) -> None:
    text, *messages = BAD_KINDS[case]
    put(project, "house/layer/kinds/gain/kind.toml", text)
    run = mplayer("kinds", "gain", cwd=project)
    assert run.returncode == 2
    for message in ("gain/kind.toml", *messages):
        assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_a_package_ships_kinds(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    put(site, "acme_kinds/__init__.py", "raise RuntimeError('nothing imports it')\n")
    for file in ("kind.toml", "layer.py.jinja"):
        text = (project / "house/layer/kinds/gain" / file).read_text("utf-8")
        put(site, f"acme_kinds/layer/kinds/volume/{file}", text)
    put(site, "acme_kinds-1.dist-info/METADATA", "Name: acme-kinds\nVersion: 1\n")
    points = "[mplayer.templates]\nacme = acme_kinds\ngone = no_such_module\n"
    put(site, "acme_kinds-1.dist-info/entry_points.txt", points)
    monkeypatch.setenv("PYTHONPATH", str(site))
    names = [
        kind["name"]
        for kind in json.loads(mplayer("kinds", "--json", cwd=project).stdout)
    ]
    assert names[-1] == "volume"
    empty = tmp_path / "empty"
    empty.mkdir()
    command = ["new", "Loud", "--kind", "volume", "--weights", "loudness"]
    run = mplayer(*command, cwd=empty)
    assert run.returncode == 0, run.stderr
    assert "inputs * loudness" in (empty / "loud.py").read_text("utf-8")


def test_one_kind_is_told_in_full(tmp_path: Path) -> None:
    run = mplayer("kinds", "dense", cwd=tmp_path)
    for word in ("For", "Hazard", "Weights", "Arguments", "Example"):
        assert f"\n  {word} " in run.stdout
    table = json.loads(mplayer("kinds", "dense", "--json", cwd=tmp_path).stdout)
    assert table["weights"] == "kernel, bias"
