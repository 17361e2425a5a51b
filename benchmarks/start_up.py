"""Prints how long `mplayer new MyLayer --weights w,b` takes, as ratios from one run.

Each command is started in turn, round after round, so that the machine's moods fall on
all alike; the medians are compared. cookiecutter and copier render the same two files,
with the layer's name as their only question.

    pip install '.[benchmark]'
    python benchmarks/start_up.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scaffold.grammar import parse
from scaffold.rendering import render

ROUNDS = 15
BIN = Path(sys.executable).parent


def templates(folder: Path) -> tuple[Path, Path]:
    """Writes a cookiecutter and a copier template of the two files."""
    texts = render(parse("MyLayer", weights="w,b"))
    files = {"my_layer.py": texts.module, "test_my_layer.py": texts.test}
    cookiecutter, copier = folder / "cookiecutter", folder / "copier"
    inner = cookiecutter / "{{cookiecutter.name}}"
    inner.mkdir(parents=True)
    copier.mkdir()
    (cookiecutter / "cookiecutter.json").write_text('{"name": "MyLayer"}', "utf-8")
    (copier / "copier.yml").write_text("name:\n  type: str\n  default: MyLayer\n")
    for name, text in files.items():
        # Braces of Python, such as {{...}} in an f-string, are not theirs to render.
        body = "{% raw %}" + text + "{% endraw %}"
        for target, variable in ((inner, "cookiecutter.name"), (copier, "name")):
            mark = f"{{% endraw %}}{{{{ {variable} }}}}{{% raw %}}"
            suffix = ".jinja" if target is copier else ""
            path = target / f"{name}{suffix}"
            path.write_text(body.replace("MyLayer", mark), "utf-8")
    return cookiecutter, copier


def seconds(command: list[str], folder: Path) -> float:
    """Runs a command in a new, empty folder and returns its wall time."""
    with tempfile.TemporaryDirectory(dir=folder) as empty:
        start = time.perf_counter()
        subprocess.run(command, cwd=empty, check=True, capture_output=True)
        return time.perf_counter() - start


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cookiecutter, copier = templates(folder)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "mplayer": [str(BIN / "mplayer"), "new", "MyLayer", "--weights", "w,b"],
            "cookiecutter": [
                str(BIN / "cookiecutter"),
                "--no-input",
                str(cookiecutter),
            ],
            "copier": [str(BIN / "copier"), "copy", "--defaults", str(copier), "out"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS + 1):
            for name, command in commands.items():
                times[name].append(seconds(command, folder))
    # The first round warms the disk.
    medians = {name: statistics.median(taken[1:]) for name, taken in times.items()}
    bare, ours = medians["python -c pass"], medians["mplayer"]
    print(
        f"medians of {ROUNDS} rounds in turn; python -c pass takes {bare * 1e3:.0f} ms"
    )
    print(f"{'command':<16}{'x python':>10}{'x mplayer':>11}")
    for name, median in medians.items():
        print(f"{name:<16}{median / bare:>10.1f}{median / ours:>11.1f}")


if __name__ == "__main__":
    main()
