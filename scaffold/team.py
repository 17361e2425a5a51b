"""answers -> texts of a team repository, through cookiecutter as a library."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from scaffold.errors import MplayerError
from scaffold.kinds import templates_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def ask_team_repo(
    answers: Mapping[str, str],
    prompt: Callable[[str, str, Callable[[str], object], Sequence[str]], str],
) -> dict[str, str]:
    """Asks what the template asks, in its order and its words.

    Cookiecutter would tell of a wrong answer and be gone, with those before it.

    Args:
        answers: Those that are known, by the names in its `cookiecutter.json`.
        prompt: Asks one: of a question, its default, the check that an answer must
            pass, which raises MplayerError, and the choices, if only some can be.

    Returns:
        All answers.
    """
    import jinja2

    from scaffold.extension import MplayerExtension

    # What is rendered are answers and file texts: nothing that a browser reads.
    environment = jinja2.Environment(  # noqa: S701
        undefined=jinja2.StrictUndefined, extensions=[MplayerExtension]
    )

    def rendered(text: str, known: Mapping[str, str]) -> str:
        return environment.from_string(text).render(cookiecutter=known)

    def check(name: str, answer: str) -> dict[str, str]:
        """Renders what the template derives from an answer: there it is refused."""
        known = {**given, name: answer}
        for derived in itertools.takewhile(_is_derived, names[names.index(name) + 1 :]):
            known[derived] = rendered(questions[derived], known)
        return known

    questions = _questions()
    texts = questions["__prompts__"]
    names = [name for name in questions if name != "__prompts__"]
    given: dict[str, str] = {}
    for name in names:
        if name.startswith("_"):
            continue
        default = questions[name]
        choices = default if isinstance(default, list) else ()
        if name in answers:
            answer = answers[name]
        else:
            answer = prompt(
                texts[name],
                choices[0] if choices else rendered(default, given),
                functools.partial(check, name),
                choices,
            )
        given = check(name, answer)
    return {name: given[name] for name in names if not name.startswith("_")}


def _is_derived(name: str) -> bool:
    return name.startswith("__")


def render_team_repo(
    answers: Mapping[str, str],
) -> tuple[str, dict[PurePosixPath, str]]:
    """Renders the template `team-repo`, as `cookiecutter` itself would.

    Args:
        answers: By the names in its `cookiecutter.json`; its defaults stand for others.

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
    _require_choices(answers)
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
            with contextlib.redirect_stdout(io.StringIO()):
                made = cookiecutter(
                    str(templates_dir() / "team-repo"),
                    no_input=True,
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


def _questions() -> dict[str, Any]:
    """The template's questions, each with its default, and what it derives of them."""
    path = templates_dir() / "team-repo" / "cookiecutter.json"
    questions: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return questions


def _require_choices(answers: Mapping[str, str]) -> None:
    """Refuses an answer that is none of those to choose from."""
    questions = _questions()
    for name, answer in answers.items():
        choices = questions[name]
        if isinstance(choices, list) and answer not in choices:
            raise MplayerError(f"--{name}: {answer!r} is none of {', '.join(choices)}.")


def _literal(answer: str) -> str:
    """An answer as a template that renders to it: cookiecutter renders its defaults."""
    return f"{{% raw %}}{answer}{{% endraw %}}" if "{" in answer else answer
