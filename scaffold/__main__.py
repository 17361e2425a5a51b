"""`python -m scaffold` is `mplayer`."""

from __future__ import annotations

import gc


def main() -> None:
    """Runs the command line."""
    # A run is short and mostly imports: looking for garbage costs more than it frees.
    gc.disable()
    from scaffold.cli import run

    run()


if __name__ == "__main__":
    main()
