"""Runs the matrix of every kind where it is called, and says so in docs/kinds.md.

    nox -s table                        all columns, each in its own environment
    python benchmarks/kinds.py keras3   one column, with what is installed here
    KERAS_BACKEND=jax python benchmarks/kinds.py jax

`docs/kinds.json` keeps the columns, of which each run replaces one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from scaffold.errors import MplayerError
from scaffold.grammar import parse
from scaffold.kinds import kind_names
from scaffold.names import camel_case
from scaffold.rendering import render

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = {
    "keras3": "tf: Keras 3",
    "tf_keras": "tf: tf_keras",
    "tf215": "tf: TensorFlow 2.15",
    "tf212": "tf: TensorFlow 2.12",
    "tensorflow": "keras: TensorFlow",
    "jax": "keras: JAX",
    "torch": "keras: PyTorch",
    "oldest": "keras: Keras 3.4",
}
VERSIONS = """
import os, importlib.metadata as m
for name in ("tensorflow-cpu", "tensorflow", "tf_keras", "keras", "jax", "torch"):
    try: print(name.removesuffix("-cpu"), m.version(name))
    except m.PackageNotFoundError: pass
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("column", choices=COLUMNS)
    name = parser.parse_args().column
    data = DOCS / "kinds.json"
    columns = json.loads(data.read_text("utf-8")) if data.exists() else {}
    dialect, _, _ = COLUMNS[name].partition(":")
    columns[name] = {"with": versions(), "kinds": column(dialect)}
    DOCS.mkdir(exist_ok=True)
    data.write_text(json.dumps(columns, indent=1) + "\n", "utf-8")
    (DOCS / "kinds.md").write_text(table(columns), "utf-8")


def versions() -> str:
    run = subprocess.run(
        [sys.executable, "-c", VERSIONS], capture_output=True, text=True, check=True
    )
    return ", ".join(run.stdout.split("\n")[:-1])


def column(dialect: str) -> dict[str, str]:
    """By kind: how many tests passed, how many failed, or why it is refused."""
    cells: dict[str, str] = {}
    modules: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in kind_names():
            try:
                spec = parse(f"Kind{camel_case(kind)}", kind=kind, dialect=dialect)
            except MplayerError as reason:
                cells[kind] = str(reason)
                continue
            texts = render(spec)
            modules[f"test_{spec.module}"] = kind
            Path(folder, f"{spec.module}.py").write_text(texts.module, "utf-8")
            Path(folder, f"test_{spec.module}.py").write_text(texts.test, "utf-8")
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2"]
        command += ["--dist", "loadfile", f"--junitxml={report}"]
        subprocess.run(command, cwd=folder, check=False)
        counts: dict[str, Counter[str]] = {kind: Counter() for kind in modules.values()}
        for case in ET.parse(report).iter("testcase"):  # noqa: S314 -- our own report
            tags = {child.tag for child in case}
            outcome = "failed" if tags & {"failure", "error"} else "passed"
            outcome = "skipped" if "skipped" in tags else outcome
            counts[modules[case.get("classname", "")]][outcome] += 1
    for kind, count in counts.items():
        failed = f", **{count['failed']} failed**" if count["failed"] else ""
        cells[kind] = f"{count['passed']}{failed}"
    return cells


def table(columns: dict[str, dict[str, dict[str, str]]]) -> str:
    """Returns the Markdown of all columns, with the reason for each empty cell."""
    shown = [name for name in COLUMNS if name in columns]
    reasons: list[str] = []
    rows = []
    for kind in kind_names():
        cells = []
        for name in shown:
            cell = columns[name]["kinds"].get(kind, "not run")
            if not cell[0].isdigit() and cell not in reasons:
                reasons.append(cell)
            cells.append(
                cell if cell[0].isdigit() else f"refused ({reasons.index(cell) + 1})"
            )
        rows.append(f"| `{kind}` | {' | '.join(cells)} |")
    lines = [
        "# Every kind, everywhere",
        "",
        "How many tests of its matrix a layer of each kind passes, as it is generated.",
        "`nox -s table` writes this anew.",
        "",
        f"| kind | {' | '.join(COLUMNS[name] for name in shown)} |",
        f"|---|{'---|' * len(shown)}",
        *rows,
        "",
        *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1)),
        "",
        *(f"- {COLUMNS[name]}: {columns[name]['with']}" for name in shown),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
