"""The checks of this repository, each in an environment of its own.

nox                      all that CI runs
nox -s unit              what needs no TensorFlow
nox -s 'matrix(tf215)'   generated layers under TensorFlow 2.15
"""

from __future__ import annotations

import platform
import sys
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.sessions = [
    "lint",
    "unit",
    "team(tf)",
    "team(keras)",
    "matrix(keras3)",
    "matrix(tf_keras)",
    "matrix(tf215)",
    "dialect(jax)",
]

# The smaller wheel, where there is one.
_CPU = platform.machine() in {"AMD64", "x86_64"} and sys.platform != "darwin"
TENSORFLOW = "tensorflow-cpu" if _CPU else "tensorflow"

KERAS: dict[str, tuple[list[str], dict[str, str]]] = {
    "keras3": ([f"{TENSORFLOW}==2.21.*"], {}),
    "tf_keras": (
        [f"{TENSORFLOW}==2.21.*", "tf_keras==2.21.*"],
        {"TF_USE_LEGACY_KERAS": "1"},
    ),
    "tf215": ([f"{TENSORFLOW}==2.15.*"], {}),
    "tf212": ([f"{TENSORFLOW}==2.12.*"], {}),
}


# The backend of the keras dialect, and what is installed for it.
BACKENDS: dict[str, tuple[str, list[str]]] = {
    "tensorflow": ("tensorflow", ["keras==3.15.*", f"{TENSORFLOW}==2.21.*"]),
    "jax": ("jax", ["keras==3.15.*", "jax>=0.10"]),
    "torch": ("torch", ["keras==3.15.*", "torch>=2.13"]),
    "oldest": ("tensorflow", ["keras==3.4.*", f"{TENSORFLOW}==2.21.*"]),
}


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint and types."""
    session.install(".[test]", "nox")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")


@nox.session
def unit(session: nox.Session) -> None:
    """All tests that need no TensorFlow; the install has none."""
    session.install(".[test]")
    session.run(
        "pytest",
        "-n",
        "auto",
        "-m",
        "not tensorflow and not keras_dialect",
        *session.posargs,
    )


@nox.session
@nox.parametrize("keras", [nox.param(name, id=name) for name in KERAS])
def matrix(session: nox.Session, keras: str) -> None:
    """Generated layers, faulty twins and sound variants under one Keras."""
    packages, environment = KERAS[keras]
    session.install(".[test]", *packages)
    session.run("pytest", "-m", "tensorflow", *session.posargs, env=environment)


@nox.session
@nox.parametrize("backend", [nox.param(name, id=name) for name in BACKENDS])
def dialect(session: nox.Session, backend: str) -> None:
    """Generated layers of the keras dialect on one backend."""
    name, packages = BACKENDS[backend]
    session.install(".[test]", "numpy", *packages)
    environment = {"KERAS_BACKEND": name}
    session.run("pytest", "-m", "keras_dialect", *session.posargs, env=environment)


@nox.session
@nox.parametrize(
    "column",
    [nox.param(name, id=name) for name in (*KERAS, *BACKENDS)],
)
def table(session: nox.Session, column: str) -> None:
    """A column of docs/kinds.md: every kind under one Keras or on one backend."""
    if column in KERAS:
        packages, environment = KERAS[column]
    else:
        name, packages = BACKENDS[column]
        environment = {"KERAS_BACKEND": name}
    session.install(".[test]", "numpy", *packages)
    session.run("python", "benchmarks/kinds.py", column, env=environment)


@nox.session
@nox.parametrize("dialect", ["tf", "keras"], ids=["tf", "keras"])
def team(session: nox.Session, dialect: str) -> None:
    """A team repository by its own commands, and the pre-commit hooks."""
    here = Path.cwd()
    session.install(".", "pre-commit")
    # Not below this repository, where ruff would take it for ignored.
    with tempfile.TemporaryDirectory() as folder:
        session.chdir(folder)
        session.env["PRE_COMMIT_HOME"] = f"{folder}/pre-commit"
        requirement = f"mplayer-scaffold @ {here.as_uri()}"
        options = ("--dialect", dialect, "--mplayer", requirement)
        session.run("mplayer", "init", "acme-layers", *options)
        session.chdir("acme-layers")
        session.install("-e", ".[test]")
        session.run("mplayer", "new", "Gain", "--weights", "gamma")
        session.run("pytest", "-q")
        session.run("ruff", "format", "--check")
        session.run("ruff", "check")
        session.run("mypy")
        session.run("git", "init", "-q", external=True)
        session.run("git", "add", "-A", external=True)
        session.run("pre-commit", "run", "--all-files")
        hooks = ("try-repo", str(here), "mplayer-update", "--all-files")
        session.run("pre-commit", *hooks)
        session.chdir(here)


@nox.session
def benchmark(session: nox.Session) -> None:
    """The ratios in the README."""
    session.install(".[test,benchmark]", *KERAS["keras3"][0])
    session.run("python", "benchmarks/start_up.py")
    session.run("python", "benchmarks/matrix.py")
    session.run("python", "benchmarks/manifest.py")
    session.run("python", "benchmarks/accuracy.py")
