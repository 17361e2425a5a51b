"""The catalogue: each kind is a folder, and what it says is true."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from scaffold.cli import app
from scaffold.errors import MplayerError
from scaffold.grammar import parse, parse_arguments, parse_weights
from scaffold.initializers import PARAMETERS, parse_initializer
from scaffold.kinds import BOUNDS, BY_WEIGHTS, kind_names, load_kind, templates_dir
from scaffold.names import variable_fault
from scaffold.rendering import render

if TYPE_CHECKING:
    from pathlib import Path

    from scaffold.spec import Argument


def test_names_are_the_folders() -> None:
    folders = sorted(p.name for p in (templates_dir() / "layer" / "kinds").iterdir())
    assert sorted(kind_names()) == folders
    assert kind_names()[:2] == BY_WEIGHTS == ("dense", "scale")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            ".",
            "..",
            "./dense",
            "dense/",
            "dense/.",
            "../kinds/dense",
            "norm/keras",
        ),
        *("Dense", "DENSE", " dense", "dense.", "dense\0", "/dense", "d\xe9nse", "~"),
    ],
)
def test_a_kind_is_a_name_and_no_path(name: str) -> None:
    with pytest.raises(
        MplayerError, match=r"there is no kind .* The kinds are dense, "
    ):
        load_kind(name)


def test_dense_is_what_the_design_says() -> None:
    kind = load_kind("dense")
    assert (kind.weights, kind.arguments) == (
        "kernel, bias",
        ("activation:activation",),
    )
    kernel, bias = kind.roles
    assert (kernel.shape, kernel.initializer, kernel.required, kernel.use) == (
        "[in,units]",
        "glorot_uniform",
        True,
        "{x} @ {name}",
    )
    assert (bias.shape, bias.required, bias.use) == ("[units]", False, "{x} + {name}")
    assert kind.role_of("w") is kernel
    assert kind.role_of("b") is bias
    assert kind.role_of("gamma") is None


@pytest.mark.parametrize("name", kind_names())
def test_texts_are_valid(name: str) -> None:
    kind = load_kind(name)
    arguments = {argument.name for argument in parse_arguments(kind.arguments)}
    assert kind.summary.endswith(".")
    assert kind.hazard.endswith(".")
    assert {*kind.help} <= arguments
    for role in kind.roles:
        assert not any(map(variable_fault, role.names))
        parse_initializer(role.initializer, role.role)
    for weight in kind.weights.split(",") if kind.weights else []:
        assert kind.role_of(weight.strip())
    command = shlex.split(kind.example)
    assert command[:2] == ["mplayer", "new"]


@pytest.mark.parametrize("name", kind_names())
def test_the_example_is_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = shlex.split(load_kind(name).example)
    run = CliRunner().invoke(app, command[1:])
    assert run.exit_code == 0, run.output
    assert json.loads((next(tmp_path.rglob("*.json"))).read_text())["kind"] == name


@pytest.mark.parametrize("name", BY_WEIGHTS)
def test_roles_of_a_kind_with_an_expression(name: str) -> None:
    kind = load_kind(name)
    parse_weights(kind.weights)
    assert kind.roles[0].required
    for role in kind.roles:
        assert role.names[0] == role.role
        assert role.initializer in PARAMETERS
        assert role.use.format(x="x", name="y") != role.use
        parse_weights(f"{role.role}{role.shape}={role.initializer}")


@pytest.mark.parametrize("name", BY_WEIGHTS)
def test_own_call_passes_its_rehearsal(name: str) -> None:
    """The parser does not rehearse what a kind has of its own: here it is done."""
    kind = load_kind(name)
    spec = parse("MyLayer", kind=name)
    for weights in (kind.weights, kind.roles[0].role):
        declared = [f"{n.strip()}{_shape(name, n.strip())}" for n in weights.split(",")]
        rehearsed = parse("MyLayer", kind=name, weights=", ".join(declared))
        assert rehearsed.large == spec.large == kind.large


def _shape(kind: str, weight: str) -> str:
    role = load_kind(kind).role_of(weight)
    assert role
    return role.shape


BODIES = [name for name in kind_names() if load_kind(name).body]


@pytest.mark.parametrize("name", BODIES)
def test_what_a_body_does_not_take_is_refused(name: str) -> None:
    kind = load_kind(name)
    with pytest.raises(MplayerError, match=r"--call: .*takes no expression"):
        parse("MyLayer", kind=name, call="inputs")
    with pytest.raises(MplayerError, match=r"--weights: 'zeta' is no weight of"):
        parse("MyLayer", kind=name, weights="zeta")
    with pytest.raises(
        MplayerError, match=r"--arg: the kind .* has no argument 'zeta'"
    ):
        parse("MyLayer", kind=name, arguments=["zeta:float=0.5"])
    for argument in parse_arguments(kind.arguments):
        other = "str" if argument.type != "str" else "int"
        with pytest.raises(MplayerError, match=rf"--arg: '{argument.name}' is a"):
            parse("MyLayer", kind=name, arguments=[f"{argument.name}:{other}"])
    for role in kind.roles:
        first, *more = role.names
        rest = [r.names[0] for r in kind.roles if r.required and r is not role]
        with pytest.raises(MplayerError, match=r"has the shape|axes"):
            parse("MyLayer", kind=name, weights=", ".join([f"{first}[7]", *rest]))
        with pytest.raises(MplayerError, match=r"how .* is stored is settled|state"):
            parse("MyLayer", kind=name, weights=", ".join([f"{first}:int32", *rest]))
        with pytest.raises(MplayerError, match=r"are both the"):
            parse("MyLayer", kind=name, weights=", ".join([first, more[0], *rest]))
        if role.required:
            others = [r.names[0] for r in kind.roles if r is not role]
            with pytest.raises(MplayerError, match=r"needs its"):
                parse("MyLayer", kind=name, weights=", ".join(others))


OUTSIDE = {
    "positive": ("0", "-1"),
    "small": ("0.0", "-0.5", "1.5"),
    "not negative": ("-0.1", "-1.0"),
    "share": ("-0.1", "1.1"),
}


def test_every_bound_is_tried() -> None:
    used = {bound for name in BODIES for bound in load_kind(name).bounds.values()}
    assert {*OUTSIDE} == {*BOUNDS} == used


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        (name, argument)
        for name in BODIES
        for argument in parse_arguments(load_kind(name).arguments)
        if argument.type in ("int", "float")
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_number_out_of_bounds_is_refused(name: str, argument: Argument) -> None:
    kind, head = load_kind(name), f"{argument.name}:{argument.type}"
    bound = kind.bounds.get(argument.name)
    for text in OUTSIDE[bound] if bound else ():
        with pytest.raises(
            MplayerError,
            match=rf"--arg: '{argument.name}' must be .*Received: {text}.*'{head}=",
        ):
            parse("MyLayer", kind=name, arguments=[f"{head}={text}"])
    for text in ("1e-60", "1e60", "-1e60") if argument.type == "float" else ():
        with pytest.raises(MplayerError, match=rf"--arg: '{argument.name}' "):
            parse("MyLayer", kind=name, arguments=[f"{head}={text}"])


def test_a_constructor_refuses_what_is_out_of_bounds() -> None:
    module = render(parse("MyLayer", kind="stats")).module
    assert "not isinstance(momentum, (int, float)) or not 0 <= momentum <= 1" in module
    assert "ValueError: If `momentum` is not a number from 0 to 1." in module


def test_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(MplayerError, match=r"--kind: .*'desne'.*Did you mean 'dense'"):
        load_kind("desne")
