"""Whatever the names and options: what is rendered is formatted, linted and narrow."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaffold.errors import MplayerError
from scaffold.grammar import parse
from scaffold.rendering import render

if TYPE_CHECKING:
    from pathlib import Path

LONG = "a_name_of_24_characters_"
SHAPES = [
    {"weights": "w,b"},
    {"weights": "gamma,beta", "options": "regularizers,constraints"},
    {"weights": "v[]:state=zeros, w[in,units]", "call": "inputs @ w + v"},
    {"weights": "w[in,units]=truncated_normal(stddev=0.02), n[]:int32:frozen"},
    {"weights": "kernel[in,units]:float32=constant(0.5), bias"},
    {
        "weights": "w, b, t[in]:frozen=random_normal(mean=0.123456, stddev=0.0123, seed=12)"
    },
    {
        "weights": f"{LONG}[in,units]=he_normal",
        "call": f"inputs @ {LONG}",
        "options": "regularizers,constraints",
    },
    {
        "weights": "w,b",
        "arguments": [
            "units:int=7",
            "activation:activation",
            *(f"{LONG[:-2]}{i}:{t}" for i, t in enumerate(("int", "float", "bool"))),
            f"{LONG[:-2]}s:str=some text",
        ],
        "doc": "A sentence that is much longer than one line of a docstring can be, so "
        "that it must be wrapped somewhere near the word wrapped.",
    },
]
NAMES = ["MyLayer", "X", "ANameOfFortyEightCharactersForALayerThatIsLongX"]
PACKAGES = ["", "acme.layers", "a_rather_long_package_name.with_subpackages.and_layers"]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rendered")
    for i, shape in enumerate(SHAPES):
        for j, (name, package) in enumerate(zip(NAMES, PACKAGES, strict=True)):
            spec = parse(name, **shape)  # type: ignore[arg-type]
            texts = render(spec, package)
            folder = root / f"{i}_{j}"
            folder.mkdir()
            (folder / f"{spec.module}.py").write_text(texts.module, "utf-8")
            (folder / f"test_{spec.module}.py").write_text(texts.test, "utf-8")
    return root


@pytest.mark.parametrize("command", [["format", "--diff"], ["check"]])
def test_ruff_has_nothing_to_say(rendered: Path, command: list[str]) -> None:
    folders = sorted(folder for folder in rendered.iterdir() if folder.is_dir())
    assert len(folders) == len(SHAPES) * len(NAMES)
    for folder in folders:
        run = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", "."],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if command == ["check"] and not folder.name.endswith("_0"):
            # Where the package is not there, its import sorts among the others.
            assert "I001" in run.stdout or run.returncode == 0, run.stdout
            assert "Found 1 error" in run.stdout or run.returncode == 0, run.stdout
        else:
            assert run.returncode == 0, run.stdout


def test_no_line_is_wider_than_88_columns(rendered: Path) -> None:
    for path in rendered.rglob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            assert len(line) <= 88 or line.startswith("from "), line


@settings(deadline=None)
@given(
    name=st.from_regex("[A-Z][A-Za-z0-9]*", fullmatch=True),
    argument=st.text().map("s:str={}".format)
    | st.floats().map("r:float={}".format)
    | st.integers().map("k:int={}".format),
    package=st.sampled_from(PACKAGES),
)
def test_our_matrix_parses_whatever_goes_into_it(
    name: str, argument: str, package: str
) -> None:
    try:
        texts = render(parse(name, weights="w,b", arguments=[argument]), package)
    except MplayerError:
        return
    assert texts.ours
    compile(texts.test, "test_layer.py", "exec", dont_inherit=True)


def test_a_line_that_cannot_be_broken_is_an_error() -> None:
    a, b, c = (f"{LONG[:-1]}{letter}" for letter in "abc")
    spec = parse(
        "MyLayer", weights=f"{a}[in,{c}], {b}[{c}]", call=f"inputs @ {a} + {b}"
    )
    with pytest.raises(MplayerError, match="longer than 88 columns"):
        render(spec._replace(call=f"{spec.call} + {b} * {b}"))
