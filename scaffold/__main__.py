"""`python -m scaffold` is `mplayer`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Runs the command line."""
    # A run is short and mostly imports: looking for garbage costs more than it frees.
    gc.disable()
    try:
        from scaffold.cli import run

        run()
    except KeyboardInterrupt:  # while a module is imported
        sys.exit(3)
    finally:
        # Python looks for garbage once more at its exit, but not among what is frozen.
        gc.freeze()


if __name__ == "__main__":
    main()
