"""Writes the golden trees anew: `python tests/golden/regenerate.py`, then read the diff."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from test_new import GOLDEN, GOLDEN_COMMANDS, mplayer

commands = {name: ["new", *command] for name, command in GOLDEN_COMMANDS.items()}
commands["keras_dialect"] = ["new", "MyLayer", "--weights", "w,b", "--dialect", "keras"]
commands["acme-layers"] = ["init", "acme-layers"]
commands["keras-layers"] = ["init", "keras-layers", "--dialect", "keras"]
for name, command in commands.items():
    folder = GOLDEN / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder if command[0] == "new" else GOLDEN).mkdir(exist_ok=True)
    run = mplayer(*command, cwd=folder if command[0] == "new" else GOLDEN)
    if run.returncode:
        raise SystemExit(run.stderr)
