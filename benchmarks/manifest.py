"""Prints how long a manifest of 1,000 layers takes, as a ratio to `mplayer new`.

pip install .
python benchmarks/manifest.py
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scaffold.kinds import kind_names

LAYERS, ROUNDS = 1000, 3


def seconds(command: list[str], manifest: str) -> tuple[float, float]:
    """Runs a command in a new folder that holds a manifest; then copies the folder."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work, "made")
        folder.mkdir()
        (folder / "layers.toml").write_text(manifest, encoding="utf-8")
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        made = time.perf_counter()
        shutil.copytree(folder, Path(work, "copy"))
        return made - start, time.perf_counter() - made


def main() -> None:
    kinds = kind_names()
    manifest = "".join(
        f'[[layer]]\nname = "Layer{i}Made"\nkind = "{kinds[i % len(kinds)]}"\n'
        for i in range(LAYERS)
    )
    mplayer = str(Path(sys.executable).parent / "mplayer")
    one = [mplayer, "new", "MyLayer", "--weights", "w,b"]
    many = [mplayer, "new", "--from", "layers.toml"]
    times = [(seconds(one, "")[0], *seconds(many, manifest)) for _ in range(ROUNDS + 1)]
    single, all_layers, copied = (
        statistics.median(taken[1:]) for taken in zip(*times, strict=True)
    )
    print(
        f"{LAYERS} layers over {len(kinds)} kinds, {5 * LAYERS} files:"
        f" {all_layers / single:.0f} times one `mplayer new`, and"
        f" {all_layers / copied:.1f} times a copy of what was written;"
        f" {all_layers / LAYERS * 1e3:.1f} ms a layer"
    )


if __name__ == "__main__":
    main()
