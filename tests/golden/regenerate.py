"""Writes the golden trees anew: `python tests/golden/regenerate.py`, then read the diff."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from test_new import GOLDEN, GOLDEN_COMMANDS, mplayer

for name, command in GOLDEN_COMMANDS.items():
    folder = GOLDEN / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    run = mplayer("new", *command, cwd=folder)
    if run.returncode:
        raise SystemExit(run.stderr)
