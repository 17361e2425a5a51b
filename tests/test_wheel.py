"""The wheel: it holds the templates compiled, and they give the same texts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import jinja2
import pytest
from test_rendering import SHAPES

from scaffold.kinds import kind_names

ROOT = Path(__file__).parent.parent
COMPILED = f"jinja2-{jinja2.__version__}"
RENDER = """
import json, sys
from scaffold.grammar import parse
from scaffold.rendering import render
shapes = json.load(sys.stdin)
json.dump([render(parse("MyLayer", **shape), "acme.layers") for shape in shapes], sys.stdout)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    subprocess.run([*command, folder], cwd=ROOT, capture_output=True, check=True)
    (path,) = folder.glob("*.whl")
    return path


def unpacked(wheel: Path, folder: Path) -> Path:
    """The templates in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder / "scaffold" / "templates"


def texts(templates: Path) -> list[list[str]]:
    """What the unpacked wheel renders."""
    root = templates.parent.parent
    run = subprocess.run(
        [sys.executable, "-c", RENDER],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        input=json.dumps([*SHAPES, *({"kind": kind} for kind in kind_names())]),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    rendered: list[list[str]] = json.loads(run.stdout)
    return rendered


def spoil_sources(templates: Path) -> None:
    for path in (templates / "layer").rglob("*.jinja"):
        path.write_text("{% none of Jinja's %}", "utf-8")


def test_compiled_templates_give_the_texts_of_the_sources(
    wheel: Path, tmp_path: Path
) -> None:
    compiled = unpacked(wheel, tmp_path / "compiled")
    spoil_sources(compiled)
    sources = unpacked(wheel, tmp_path / "sources")
    shutil.rmtree(sources / COMPILED)
    assert texts(compiled) == texts(sources)


def test_what_another_jinja_has_compiled_is_not_used(
    wheel: Path, tmp_path: Path
) -> None:
    templates = unpacked(wheel, tmp_path)
    (templates / COMPILED).rename(templates / "jinja2-3.1.0")
    assert texts(templates)
    spoil_sources(templates)
    with pytest.raises(subprocess.CalledProcessError) as failure:
        texts(templates)
    assert "TemplateSyntaxError" in failure.value.stderr
