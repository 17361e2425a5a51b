"""Lets cookiecutter find mplayer, also where it was given this folder alone."""

import sys
from pathlib import Path

# A clone renders with its own code, whatever mplayer is installed beside it. Inside an
# installed one this is no folder of packages.
clone = Path(__file__).resolve().parents[2]
if (clone / "scaffold" / "extension.py").is_file():
    sys.path.insert(0, str(clone))

from scaffold.extension import MplayerExtension

__all__ = ["MplayerExtension"]
