"""The catalogue: each kind is a folder, and what it says is true."""

from __future__ import annotations

import pytest

from scaffold.errors import MplayerError
from scaffold.grammar import parse, parse_arguments, parse_weights
from scaffold.initializers import PARAMETERS
from scaffold.kinds import kind_names, load_kind, templates_dir
from scaffold.names import variable_fault


def test_names_are_the_folders() -> None:
    folders = sorted(p.name for p in (templates_dir() / "layer" / "kinds").iterdir())
    assert list(kind_names()) == folders
    assert {"dense", "scale"} <= {*folders}


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
    parse_weights(kind.weights)
    parse_arguments(kind.arguments)
    assert kind.roles[0].required
    assert kind.summary.endswith(".")
    assert kind.hazard.endswith(".")
    assert kind.example.startswith("mplayer new ")
    for role in kind.roles:
        assert role.names[0] == role.role
        assert role.initializer in PARAMETERS
        assert not any(map(variable_fault, role.names))
        assert role.use.format(x="x", name="y") != role.use
        parse_weights(f"{role.role}{role.shape}={role.initializer}")


@pytest.mark.parametrize("name", kind_names())
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


def test_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(MplayerError, match=r"--kind: .*'desne'.*Did you mean 'dense'"):
        load_kind("desne")
