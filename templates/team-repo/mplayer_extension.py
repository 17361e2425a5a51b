"""Lets cookiecutter find mplayer, also where it was given this folder alone."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from scaffold.extension import MplayerExtension

__all__ = ["MplayerExtension"]
