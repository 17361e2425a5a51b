"""answers -> texts of a team repository, through cookiecutter as a library."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from scaffold.errors import MplayerError
from scaffold.kinds import templates_dir

if TYPE_CHECKING:
    from collections.abc import Mapping


def render_team_repo(
    answers: Mapping[str, str], *, ask: bool = False
) -> tuple[str, dict[PurePosixPath, str]]:
    """Renders the template `team-repo`, as `cookiecutter` itself would.

    Args:
        answers: By the names in its `cookiecutter.json`; its defaults stand for others.
        ask: Whether cookiecutter asks, offering the answers.

    Returns:
        The name of the folder, and the texts of the files in it.

    Raises:
        MplayerError: If cookiecutter is not installed, or an answer cannot be.
    """
    try:
        from cookiecutter.exceptions import CookiecutterException
        from cookiecutter.main import cookiecutter
    except ImportError as error:
        raise MplayerError(
            f"`mplayer init` needs cookiecutter ({error}). Install it: pip install"
            " cookiecutter"
        ) from error
    template = templates_dir() / "team-repo"
    _require_choices(template, answers)
    with tempfile.TemporaryDirectory() as work:
        # A home folder is not touched: neither are its settings read nor answers kept.
        config = Path(work, "config.yaml")
        folders = {
            "replay_dir": f"{work}/replay",
            "cookiecutters_dir": f"{work}/clones",
        }
        config.write_text(json.dumps(folders), encoding="utf-8")
        try:
            # Standard output is for what was written.
            with (
                contextlib.nullcontext()
                if ask
                else contextlib.redirect_stdout(io.StringIO())
            ):
                made = cookiecutter(
                    str(template),
                    no_input=not ask,
                    extra_context={k: _literal(v) for k, v in answers.items()},
                    output_dir=f"{work}/out",
                    config_file=str(config),
                )
        except CookiecutterException as error:
            raise MplayerError(str(error)) from error
        root = Path(made)
        texts = {
            PurePosixPath(path.relative_to(root).as_posix()): path.read_bytes().decode()
            for path in sorted(root.rglob("*"))
            # pip compiles what ends in .py, also in a template.
            if path.is_file() and "__pycache__" not in path.parts
        }
        return root.name, texts


def _require_choices(template: Path, answers: Mapping[str, str]) -> None:
    """Refuses an answer that is none of those to choose from."""
    questions = json.loads((template / "cookiecutter.json").read_text("utf-8"))
    for name, answer in answers.items():
        choices = questions[name]
        if isinstance(choices, list) and answer not in choices:
            raise MplayerError(f"--{name}: {answer!r} is none of {', '.join(choices)}.")


def _literal(answer: str) -> str:
    """An answer as a template that renders to it: cookiecutter renders its defaults."""
    return f"{{% raw %}}{answer}{{% endraw %}}" if "{" in answer else answer
