"""`python -m scaffold` is `mplayer`."""

from __future__ import annotations

import gc


def main() -> None:
    """Runs the command line."""
    # A run is short and mostly imports: looking for garbage costs more than it frees.
    gc.disable()
    from scaffold.cli import run

    try:
        run()
    finally:
        # Python looks for garbage once more at its exit, but not among what is frozen.
        gc.freeze()


if __name__ == "__main__":
    main()
