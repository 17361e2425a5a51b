"""`mplayer update`: what becomes of generated code, and of the edits in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from test_publish import snapshot
from typer.testing import CliRunner

from scaffold.cli import app
from scaffold.kinds import templates_dir

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Edit: TypeAlias = Callable[[Path], object]

MODULE, TEST, RECORD = "my_layer.py", "test_my_layer.py", ".mplayer/my_layer.json"
PRISTINE = ".mplayer/my_layer.module.txt"
# The one line of each file that the newer templates have otherwise.
OLD = '        """Returns the arguments; the base config has the name and the policy."""\n'
NEW = '        """Returns all that the constructor was given."""\n'
OLD_TEST = "# The shape of one input, without the batch.\n"
NEW_TEST = "# One input has this shape; the batch comes before it.\n"
ABOVE, BELOW = "import tensorflow as tf\n", "        return config\n"
BESIDE = "        config: dict[str, Any] = super().get_config()\n"
MARKS = ("<<<<<<< yours\n", "=======\n", ">>>>>>> mplayer ")
UPDATE = ("update", "--templates", "../team")
FRESH = "All generated code is up to date."


def replaced(name: str, old: str, new: str) -> Edit:
    """The user replaces a text in a file."""

    def edit(root: Path) -> None:
        source = (root / name).read_bytes()
        assert source.count(old.encode()) >= 1
        (root / name).write_bytes(source.replace(old.encode(), new.encode()))

    return edit


def deleted(name: str) -> Edit:
    return lambda root: (root / name).unlink()


def moved(old: str, new: str) -> Edit:
    def edit(root: Path) -> None:
        (root / new).parent.mkdir(exist_ok=True)
        (root / old).rename(root / new)

    return edit


def crlf(*names: str) -> tuple[Edit, ...]:
    return tuple(replaced(name, "\n", "\r\n") for name in names)


def ended(name: str, end: bytes) -> Edit:
    """The file gets another end in place of its line feed."""

    def edit(root: Path) -> None:
        (root / name).write_bytes((root / name).read_bytes()[:-1] + end)

    return edit


def half_crlf(root: Path) -> None:
    lines = (root / MODULE).read_bytes().splitlines(keepends=True)
    lines[:5] = [line.replace(b"\n", b"\r\n") for line in lines[:5]]
    (root / MODULE).write_bytes(b"".join(lines))


def marked(root: Path) -> None:
    """An earlier update has left a conflict."""
    text = (root / MODULE).read_text()
    text += "<<<<<<< yours\na = 1\n=======\na = 2\n>>>>>>> mplayer 0\n"
    (root / MODULE).write_text(text)


def recorded(**entries: object) -> Edit:
    """Someone puts other values into the record."""

    def edit(root: Path) -> None:
        table = json.loads((root / RECORD).read_text())
        (root / RECORD).write_text(json.dumps({**table, **entries}))

    return edit


def updated(*options: str) -> Edit:
    """An earlier run of the same kind, before further edits."""
    return lambda _: run(*UPDATE, *options)


class History(NamedTuple):
    """What the user does after `mplayer new MyLayer --weights w,b`, and what comes."""

    edits: tuple[Edit, ...] = ()
    command: tuple[str, ...] = UPDATE
    code: int = 0
    says: tuple[str, ...] = ()
    holds: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 -- never changed
    lacks: dict[str, tuple[str, ...]] = {}  # noqa: RUF012
    untouched: bool = False
    """Nothing at all has been written."""


MERGED = {MODULE: (NEW, "# mine\n"), TEST: (NEW_TEST,)}
GONE = (
    f"'{MODULE}' is gone, and its template has changed",
    "--force",
    "remove MyLayer",
)
DAMAGED = ("cannot be read as a record", "Restore it from version control")
HISTORIES = {
    "untouched": History(
        says=(f"updated  {MODULE}", f"updated  {TEST}"),
        holds={MODULE: (NEW,), TEST: (NEW_TEST,), PRISTINE: (NEW,)},
        lacks={MODULE: (OLD,)},
    ),
    "the same templates": History(command=("update",), says=(FRESH,), untouched=True),
    "edited, the same templates": History(
        (replaced(MODULE, OLD, "        # mine\n"),),
        ("update",),
        says=(FRESH,),
        untouched=True,
    ),
    "edited above": History(
        (replaced(MODULE, ABOVE, f"# mine\n{ABOVE}"),),
        says=(f"merged   {MODULE}", f"updated  {TEST}"),
        holds=MERGED,
        lacks={MODULE: (OLD, *MARKS)},
    ),
    "edited below": History(
        (replaced(MODULE, BELOW, f"# mine\n{BELOW}"),),
        holds=MERGED,
        lacks={MODULE: (OLD, *MARKS)},
    ),
    "edited beside": History(
        (replaced(MODULE, BESIDE, f"        # mine\n{BESIDE}"),),
        code=1,
        says=(f"CONFLICTS MARKED  {MODULE}", "keep what is right"),
        holds={MODULE: (NEW, "# mine\n", BESIDE, *MARKS), TEST: (NEW_TEST,)},
    ),
    "edited at the line": History(
        (replaced(MODULE, OLD, "        # mine\n"),),
        code=1,
        says=(f"'{MODULE}' has been edited where its template has changed",),
        holds={MODULE: (NEW, "        # mine\n", *MARKS)},
    ),
    "line deleted": History(
        (replaced(MODULE, OLD, ""),), code=1, holds={MODULE: (NEW, *MARKS)}
    ),
    "marks that a docstring tells of": History(
        (
            replaced(
                MODULE,
                ABOVE,
                f'{ABOVE}\nHELP = """\n<<<<<<< mine\n=======\n>>>>>>> yours\n"""\n',
            ),
        ),
        says=(f"merged   {MODULE}",),
        holds={MODULE: (NEW, "<<<<<<< mine\n")},
    ),
    "marks of a merge by git": History(
        (replaced(MODULE, ABOVE, f"<<<<<<< HEAD\n{ABOVE}=======\n>>>>>>> a branch\n"),),
        code=1,
        says=("still holds the conflicts",),
        lacks={MODULE: (NEW,)},
    ),
    "both sides alike": History(
        (replaced(MODULE, OLD, NEW),),
        says=(f"updated  {TEST}",),
        holds={MODULE: (NEW,), PRISTINE: (NEW,)},
        lacks={MODULE: MARKS},
    ),
    "both sides alike, and more": History(
        (replaced(MODULE, OLD, NEW), replaced(MODULE, ABOVE, f"{ABOVE}# mine\n")),
        holds=MERGED,
        lacks={MODULE: MARKS},
    ),
    "both files edited": History(
        (
            replaced(MODULE, BELOW, f"# mine\n{BELOW}"),
            replaced(TEST, "LARGE = 300.0", "LARGE = 7.0"),
        ),
        says=(f"merged  {MODULE}", f"merged  {TEST}"),
        holds={MODULE: (NEW,), TEST: (NEW_TEST, "LARGE = 7.0")},
    ),
    "renamed file": History(
        (
            moved(MODULE, "best.py"),
            replaced(TEST, "from my_layer import", "from best import"),
        ),
        says=("updated  best.py",),
        holds={
            "best.py": (NEW,),
            TEST: (NEW_TEST, "from best import MyLayer\n"),
            RECORD: ('"path": "best.py"',),
        },
    ),
    "moved files": History(
        (moved(MODULE, f"a/{MODULE}"), moved(TEST, f"b/{TEST}")),
        holds={f"a/{MODULE}": (NEW,), f"b/{TEST}": (NEW_TEST,)},
    ),
    "moved, the same templates": History(
        (moved(MODULE, f"a/{MODULE}"),),
        ("update",),
        says=(FRESH,),
        holds={f"a/{MODULE}": (OLD,), RECORD: (f'"path": "a/{MODULE}"',)},
    ),
    "moved and edited": History(
        (
            moved(MODULE, f"a/{MODULE}"),
            replaced(f"a/{MODULE}", BELOW, f"# mine\n{BELOW}"),
        ),
        holds={f"a/{MODULE}": (NEW, "# mine\n")},
    ),
    "moved into a folder that is not looked into": History(
        (moved(MODULE, f"build/{MODULE}"),), code=1, says=GONE
    ),
    "copied, and the first deleted": History(
        (
            lambda root: shutil.copy(root / MODULE, root / "one.py"),
            moved(MODULE, "two.py"),
        ),
        code=1,
        says=("'one.py' and 'two.py' hold MyLayer: move the one that is the layer",),
        lacks={"one.py": (NEW,), "two.py": (NEW,)},
    ),
    "a folder named like a module": History(
        (moved(MODULE, "best.py"), lambda root: (root / "x.py").mkdir()),
        holds={"best.py": (NEW,)},
    ),
    "renamed class": History(
        (replaced(MODULE, "MyLayer", "Best"), replaced(TEST, "MyLayer", "Best")),
        says=(f"merged  {MODULE}", f"merged  {TEST}"),
        holds={MODULE: (NEW, "class Best("), TEST: (NEW_TEST, "import Best\n")},
        lacks={MODULE: ("MyLayer",)},
    ),
    "deleted module": History(
        (deleted(MODULE),), code=1, says=GONE, holds={TEST: (NEW_TEST,)}
    ),
    "deleted test": History(
        (deleted(TEST),), code=1, says=(f"'{TEST}' is gone",), holds={MODULE: (NEW,)}
    ),
    "both deleted": History(
        (deleted(MODULE), deleted(TEST)), code=1, says=(*GONE, f"'{TEST}' is gone")
    ),
    "both deleted, the same templates": History(
        (deleted(MODULE), deleted(TEST)), ("update",), says=(FRESH,), untouched=True
    ),
    "deleted, and forced": History(
        (deleted(MODULE),), (*UPDATE, "--force"), holds={MODULE: (NEW,)}
    ),
    "CRLF": History(
        crlf(MODULE),
        says=(f"updated  {MODULE}",),
        holds={MODULE: (NEW.replace("\n", "\r\n"),), TEST: (NEW_TEST,)},
    ),
    "CRLF, edited": History(
        (*crlf(MODULE), replaced(MODULE, BELOW[:-1], f"# mine\r\n{BELOW[:-1]}")),
        says=(f"merged   {MODULE}",),
        holds={MODULE: (NEW.replace("\n", "\r\n"), "\r\n# mine\r\n")},
    ),
    "CRLF, edited at the line": History(
        (*crlf(MODULE), replaced(MODULE, OLD[:-1], "        # mine")),
        code=1,
        holds={MODULE: ("\r\n        # mine\r\n", "<<<<<<< yours\r\n")},
    ),
    "CRLF records": History(
        crlf(RECORD, PRISTINE, ".mplayer/my_layer.test.txt"),
        holds={MODULE: (NEW,), TEST: (NEW_TEST,)},
    ),
    "CRLF everywhere, the same templates": History(
        crlf(MODULE, TEST, RECORD, PRISTINE, ".mplayer/my_layer.test.txt"),
        ("update",),
        says=(FRESH,),
        untouched=True,
    ),
    "mixed line endings": History(
        (half_crlf,), says=(f"updated  {MODULE}",), holds={MODULE: (NEW,)}
    ),
    "another line ending at the line": History(
        (replaced(MODULE, OLD, f"{OLD[:-1]}\r\n"),),
        says=(f"updated  {MODULE}",),
        holds={MODULE: (NEW,)},
        lacks={MODULE: (OLD[:-1], *MARKS)},
    ),
    "mixed line endings, edited": History(
        (half_crlf, replaced(MODULE, BELOW, f"# mine\n{BELOW}")),
        holds={MODULE: (NEW, "# mine\n", "import annotations\r\n")},
    ),
    "mark": History(
        (
            lambda root: (root / MODULE).write_bytes(
                b"\xef\xbb\xbf" + (root / MODULE).read_bytes()
            ),
        ),
        holds={MODULE: ("\ufeff", NEW)},
    ),
    "not UTF-8": History(
        (
            lambda root: (root / MODULE).write_bytes(
                (root / MODULE).read_bytes() + b"# \xe9t\xe9\n"
            ),
        ),
        code=1,
        says=(f"'{MODULE}' is not UTF-8, and was left as it is",),
        holds={TEST: (NEW_TEST,)},
    ),
    "no trailing newline": History(
        (ended(MODULE, b""),),
        holds={MODULE: (NEW, BELOW[:-1])},
        lacks={MODULE: (BELOW,)},
    ),
    "more at the end, without a newline": History(
        (ended(MODULE, b"\n\n# mine"),), holds={MODULE: (NEW, "\n\n# mine")}
    ),
    "unresolved conflicts": History(
        (marked,),
        code=1,
        says=(f"'{MODULE}' still holds the conflicts of an earlier update",),
        holds={TEST: (NEW_TEST,)},
    ),
    "unresolved conflicts, nothing new": History(
        (marked,), ("update",), 1, ("still holds the conflicts",), untouched=True
    ),
    "resolved conflicts": History(
        (
            replaced(MODULE, OLD, "        # mine\n"),
            updated(),
            replaced(MODULE, "<<<<<<< yours\n", ""),
            replaced(MODULE, "=======\n", ""),
            replaced(MODULE, ">>>>>>> mplayer 0.1.0\n", ""),
        ),
        says=(FRESH,),
        untouched=True,
    ),
    "forced": History(
        (replaced(MODULE, OLD, "        # mine\n"), replaced(TEST, "300.0", "7.0")),
        (*UPDATE, "--force"),
        says=(f"updated  {MODULE}",),
        holds={MODULE: (NEW,), TEST: (NEW_TEST, "LARGE = 300.0")},
        lacks={MODULE: ("# mine",)},
    ),
    "pristine text gone": History(
        (deleted(PRISTINE),),
        code=2,
        says=(f"'{PRISTINE}' is gone", "Restore it from version control", "--force"),
        untouched=True,
    ),
    "pristine text damaged": History(
        (replaced(PRISTINE, "config", "cnofig"),),
        code=2,
        says=(f"'{PRISTINE}' is not what was generated",),
        untouched=True,
    ),
    "pristine text gone, and forced": History(
        (deleted(PRISTINE),), (*UPDATE, "--force"), holds={PRISTINE: (NEW,)}
    ),
    "record no JSON": History(
        (replaced(RECORD, "{", "<"),), code=2, says=DAMAGED, untouched=True
    ),
    "record nested beyond reason": History(
        (lambda root: (root / RECORD).write_text("[" * 100_000),),
        code=2,
        says=DAMAGED,
        untouched=True,
    ),
    "record not UTF-8": History(
        (lambda root: (root / RECORD).write_bytes(b"\xff"),),
        code=2,
        says=DAMAGED,
        untouched=True,
    ),
    "record a list": History(
        (lambda root: (root / RECORD).write_text("[]"),),
        code=2,
        says=DAMAGED,
        untouched=True,
    ),
    **{
        f"record with {key}: {value!r}": History(
            (recorded(**{key: value}),), code=2, says=DAMAGED, untouched=True
        )
        for key, value in {
            "weights": 5,
            "name": None,
            "arguments": [1],
            "options": None,
            "module": "my_layer.py",
            "test": {"path": TEST, "sha256": None},
            "package": None,
            "export": {"path": "__init__.py", "sha256": "", "undo": [["a", 1, []]]},
            "created": 3,
            "mplayer": 1,
        }.items()
    },
    **{
        f"record that leads to {path}": History(
            (recorded(module={"path": path, "sha256": "0"}),),
            code=2,
            says=(*DAMAGED, "does not lie inside the project"),
            untouched=True,
        )
        for path in ("../x.py", "a/../../x.py", "/x.py", "C:/x.py", "", ".")
    },
    "record of another format": History(
        (recorded(format=2),),
        code=2,
        says=("has the format 2", "Install the newest"),
        untouched=True,
    ),
    "record without a key": History(
        (replaced(RECORD, '"package"', '"pakcage"'),),
        code=2,
        says=(*DAMAGED, "package"),
        untouched=True,
    ),
    "new weight": History(
        command=(
            "update",
            "MyLayer",
            "--weights",
            "w,b,g[units]=ones",
            "--call",
            "(inputs @ w + b) * g",
        ),
        says=(f"updated  {MODULE}",),
        holds={MODULE: ('name="g"', "* g"), RECORD: ("w,b,g[units]=ones",)},
    ),
    "new weight, edited": History(
        (replaced(MODULE, BELOW, f"# mine\n{BELOW}"),),
        (
            "update",
            "MyLayer",
            "--weights",
            "w,b,g[units]=ones",
            "--call",
            "(inputs @ w + b) * g",
        ),
        says=(f"merged   {MODULE}",),
        holds={MODULE: ('name="g"', "# mine\n")},
    ),
    "renamed weight": History(
        command=("update", "MyLayer", "--weights", "kernel,b"),
        holds={MODULE: ('name="kernel"', "inputs @ kernel + b")},
        lacks={MODULE: ('name="w"',)},
    ),
    "renamed weight where it was edited": History(
        (
            replaced(
                MODULE,
                "        return inputs @ w + b\n",
                "        return inputs @ w + b + 1\n",
            ),
        ),
        ("update", "MyLayer", "--weights", "kernel,b"),
        code=1,
        holds={MODULE: ("return inputs @ w + b + 1\n", "inputs @ kernel + b", *MARKS)},
    ),
    "new argument": History(
        command=("update", MODULE, "--arg", "activation:activation=relu"),
        holds={MODULE: ("activation(inputs @ w + b)",)},
    ),
    "new first line": History(
        command=("update", "MyLayer", "--doc", "Adds up."),
        holds={MODULE: ('"""Adds up.',)},
    ),
    "a spec that the grammar refuses": History(
        command=("update", "MyLayer", "--weights", "weights,b"),
        code=2,
        says=("MyLayer: ", "'weights'", "kernel"),
        untouched=True,
    ),
    "a call that fails on the rehearsal": History(
        command=("update", "MyLayer", "--call", "inputs @ nothing"),
        code=2,
        says=("MyLayer: ", "nothing"),
        untouched=True,
    ),
    "a new spec without a name": History(
        command=("update", "--weights", "kernel,b"),
        code=2,
        says=("A new spec is for one layer. Name it",),
        untouched=True,
    ),
    "an unknown name": History(
        command=("update", "MyLayr"),
        code=2,
        says=("No layer 'MyLayr' is recorded", "Did you mean 'MyLayer'?"),
        untouched=True,
    ),
    "a team's template that fails": History(
        command=("update", "--templates", "../broken"),
        code=2,
        says=("cannot be rendered",),
        untouched=True,
    ),
    "check, clean": History(
        command=("update", "--check"), says=(FRESH,), untouched=True
    ),
    "check, stale": History(
        command=(*UPDATE, "--check"),
        code=1,
        says=(f"stale  {MODULE}", f"stale  {TEST}", "mplayer update"),
        untouched=True,
    ),
    "check, edited but current": History(
        (replaced(MODULE, OLD, "        # mine\n"),),
        ("update", "--check"),
        says=(FRESH,),
        untouched=True,
    ),
    "check, as JSON": History(
        command=(*UPDATE, "--check", "--json"),
        code=1,
        says=('"stale": [\n    "my_layer.py"', '"written": false'),
        untouched=True,
    ),
    "dry run": History(
        (replaced(MODULE, BELOW, f"# mine\n{BELOW}"),),
        (*UPDATE, "--dry-run"),
        says=(f"would merge   {MODULE}", f"would update  {TEST}"),
        untouched=True,
    ),
    "dry run of a conflict": History(
        (replaced(MODULE, OLD, "        # mine\n"),),
        (*UPDATE, "--dry-run"),
        code=1,
        says=(f"would mark conflicts  {MODULE}",),
        untouched=True,
    ),
    "diff": History(
        command=(*UPDATE, "--diff"), says=(f"-{OLD}+{NEW}",), untouched=True
    ),
}


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done
    return done.exit_code, done.stdout, done.stderr


def new(name: str = "MyLayer", *options: str) -> None:
    code, _, said = run("new", name, "--weights", "w,b", *options)
    assert code == 0, said


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, beside the folder of templates that stands for a newer mplayer."""
    for folder, name, old, after in (
        ("team", "layer.py.jinja", OLD, NEW),
        ("team", "test_layer.py.jinja", OLD_TEST, NEW_TEST),
        ("broken", "layer.py.jinja", OLD, "{{ nothing.at.all }}\n"),
    ):
        text = (templates_dir() / "layer" / name).read_text("utf-8")
        assert text.count(old) == 1
        path = tmp_path / folder / "layer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(old, after), "utf-8")
    root = tmp_path / "project"
    root.mkdir()
    monkeypatch.chdir(root)
    return root


def lines(root: Path) -> Counter[bytes]:
    """The lines of all that is not mplayer's own, whatever they end in."""
    return Counter(
        line.rstrip(b"\r")
        for path in root.rglob("*")
        if path.is_file() and ".mplayer" not in path.parts and ".git" not in path.parts
        for line in path.read_bytes().split(b"\n")
    )


def run_and_keep_edits(
    root: Path, generated: Counter[bytes], *command: str
) -> tuple[int, str]:
    """Runs a command, twice: no line of the user's goes, and nothing is done again."""
    mine = lines(root) - generated
    code, out, said = run(*command)
    if "--force" not in command:
        assert not mine - lines(root)
    after = snapshot(root)
    again = run(*command)[0]
    assert snapshot(root) == after
    assert again == code
    return code, out + said


@pytest.mark.parametrize("name", HISTORIES)
def test_history(root: Path, name: str) -> None:
    history = HISTORIES[name]
    new()
    generated = lines(root)
    for edit in history.edits:
        edit(root)
    before = snapshot(root)
    code, said = run_and_keep_edits(root, generated, *history.command)
    assert code == history.code, said
    for words in history.says:
        assert words in said
    for path, texts in history.holds.items():
        text = (root / path).read_bytes().decode("utf-8")
        assert all(part in text for part in texts), text
    for path, texts in history.lacks.items():
        text = (root / path).read_bytes().decode("utf-8")
        assert not any(part in text for part in texts), text
    if history.untouched:
        assert snapshot(root) == before


def test_there_are_many_histories() -> None:
    assert len(HISTORIES) >= 30


def test_without_git_what_is_untouched_is_updated(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new()
    monkeypatch.setenv("PATH", str(root / "nothing"))
    assert run(*UPDATE)[0] == 0
    assert NEW in (root / MODULE).read_text()


def test_without_git_an_edited_file_stops_all(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new()
    replaced(TEST, "300.0", "7.0")(root)
    before = snapshot(root)
    monkeypatch.setenv("PATH", str(root / "nothing"))
    code, out, said = run(*UPDATE)
    assert (code, out) == (2, "")
    assert f"MyLayer: '{TEST}'" in said or f"'{TEST}'" in said
    assert "git is needed" in said
    assert "--force" in said
    assert snapshot(root) == before


@pytest.mark.parametrize("code", ["kill -9 $$", "exit 255"])
def test_a_git_that_fails_stops_all(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    new()
    replaced(TEST, "300.0", "7.0")(root)
    git = root.parent / "bin/git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\n{code}\n")
    git.chmod(0o755)
    before = snapshot(root)
    monkeypatch.setenv("PATH", str(git.parent))
    assert run(*UPDATE)[0] == 2
    assert snapshot(root) == before


def test_a_read_only_file_stops_all(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new()
    before = snapshot(root)
    # By a fake, since root may write everything.
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != TEST)
    code, out, said = run(*UPDATE)
    assert (code, out) == (2, "")
    assert f"'{TEST}': the file is read-only" in said
    assert snapshot(root) == before


def test_an_edit_that_comes_while_it_merges_is_kept(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new()
    replaced(TEST, "300.0", "7.0")(root)

    def late(*command: list[str], **options: bool) -> object:
        replaced(TEST, "7.0", "8.0")(root)
        return start(*command, **options)  # type: ignore[call-overload]

    start = subprocess.run
    monkeypatch.setattr(subprocess, "run", late)
    code, _, said = run(*UPDATE)
    assert code == 2
    assert f"'{TEST}' was changed by someone else meanwhile" in said
    assert "LARGE = 8.0\n" in (root / TEST).read_text()
    assert OLD in (root / MODULE).read_text()


def test_modes_and_links_stay(root: Path) -> None:
    new()
    (root / MODULE).chmod(0o640)
    (root / "real").mkdir()
    (root / TEST).rename(root / "real/it.py")
    (root / TEST).symlink_to("real/it.py")
    assert run(*UPDATE)[0] == 0
    assert (root / MODULE).stat().st_mode & 0o777 == 0o640
    assert (root / TEST).is_symlink()
    assert NEW_TEST in (root / "real/it.py").read_text()


def test_the_diff_is_a_patch_that_git_applies(root: Path) -> None:
    new()
    replaced(MODULE, BELOW, f"# mine\n{BELOW}")(root)
    ended(TEST, b"")(root)
    _, patch, _ = run(*UPDATE, "--diff")
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True, cwd=root)
    applied = snapshot(root)
    shutil.rmtree(root)
    root.mkdir()
    os.chdir(root)
    new()
    replaced(MODULE, BELOW, f"# mine\n{BELOW}")(root)
    ended(TEST, b"")(root)
    run(*UPDATE)
    assert snapshot(root) == applied


def test_json_reports_the_same_plan(root: Path) -> None:
    new()
    replaced(MODULE, OLD, "        # mine\n")(root)
    planned = json.loads(run(*UPDATE, "--json", "--dry-run")[1])
    done = json.loads(run(*UPDATE, "--json")[1])
    assert (planned.pop("written"), done.pop("written")) == (False, True)
    assert planned == done
    files = {file["path"]: file["status"] for file in done["files"]}
    assert files[MODULE] == "marked"
    assert files[TEST] == "update"
    assert done["stale"] == [MODULE, TEST]
    assert len(done["findings"]) == 1


def test_an_ambiguous_name_needs_the_path(root: Path) -> None:
    new("MyLayer", "--layer-dir", "a", "--test-dir", "a")
    new("MyLayer", "--layer-dir", "b", "--test-dir", "b")
    before = snapshot(root)
    code, _, said = run(*UPDATE, "MyLayer")
    assert code == 2
    assert "'MyLayer' could be 'a/my_layer.py', 'b/my_layer.py'. Give the path" in said
    assert snapshot(root) == before
    assert run(*UPDATE, "b/my_layer.py")[0] == 0
    assert OLD in (root / "a/my_layer.py").read_text()
    assert NEW in (root / "b/my_layer.py").read_text()


def test_from_a_folder_below(root: Path) -> None:
    new()
    (root / "a/b").mkdir(parents=True)
    os.chdir(root / "a/b")
    assert run("update", "--templates", "../../../team")[0] == 0
    assert NEW in (root / MODULE).read_text()


@pytest.mark.parametrize(
    ("command", "code"), [(["update", "--check"], 0), (["update", "MyLayer"], 2)]
)
def test_where_nothing_was_generated_it_says_so(
    command: list[str], code: int, root: Path
) -> None:
    """A hook runs everywhere; who names a layer expects it to be there."""
    (root / "mine.py").write_text("")
    seen, out, said = run(*command)
    assert (seen, out) == (code, "")
    assert "hold no '.mplayer'" in said
    assert "mplayer new" in said
    assert [*snapshot(root)] == ["mine.py"]


def package(root: Path, init: str = "") -> Path:
    """A project with a layers package; returns its `__init__.py`."""
    layers = root / "src/acme/layers"
    layers.mkdir(parents=True)
    (root / "pyproject.toml").write_text('[project]\nname = "acme"\n')
    (root / "src/acme/__init__.py").write_text("")
    (layers / "__init__.py").write_text(init)
    return layers / "__init__.py"


@pytest.mark.parametrize(
    "by_hand",
    [
        "from .my_layer import MyLayer as MyLayer\n",
        "",
        "x = 1\n",
        "not Python at all\n",
    ],
)
def test_exports_are_the_users_own(root: Path, by_hand: str) -> None:
    init = package(root)
    new()
    generated = lines(root)
    init.write_text(by_hand)
    assert run_and_keep_edits(root, generated, *UPDATE)[0] == 0
    assert init.read_text() == by_hand
    assert NEW in (init.parent / MODULE).read_text()


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(
        ["git", *identity, *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


# Git takes two conflicts for one where no more than three lines are between them, and
# the union of that is no Python. So a file with one export needs a comment there.
ONE = 'from .zeta import Zeta\n\n# Sorted.\n__all__ = [\n    "Zeta",\n]\n'
TWO = """\
from .eta import Eta
from .zeta import Zeta

__all__ = [
    "Eta",
    "Zeta",
]
"""


@pytest.mark.parametrize("exports", [ONE, TWO])
def test_layers_of_two_branches_merge_and_update(root: Path, exports: str) -> None:
    init = package(root, exports)
    (init.parent / "zeta.py").write_text("class Zeta: ...\n")
    (root / ".gitattributes").write_text("__init__.py merge=union\n")
    git(root, "init", "-q", "-b", "trunk")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Begin")
    for branch, name in (("one", "MyLayer"), ("two", "Other")):
        git(root, "checkout", "-q", "-b", branch, "trunk")
        new(name)
        git(root, "add", "-A")
        git(root, "commit", "-qm", name)
    git(root, "merge", "-q", "one", "-m", "Both")
    assert git(root, "status", "--porcelain") == ""
    for name in ("MyLayer", "Other"):
        assert init.read_text().count(f'    "{name}",\n') == 1
        assert init.read_text().count(f"import {name}\n") == 1
    compile(init.read_text(), init, "exec")

    assert run("update", "--check")[0] == 0
    code, said = run_and_keep_edits(root, lines(root), *UPDATE)
    assert (code, said.count("updated  ")) == (0, 4)
    assert NEW in (init.parent / MODULE).read_text()
    assert NEW in (init.parent / "other.py").read_text()

    for name in ("MyLayer", "Other"):
        assert run("remove", name)[0] == 0
    assert git(root, "status", "--porcelain") != ""
    assert init.read_text() == exports
    git(root, "checkout", "-q", "-f", "trunk")
    assert not (root / ".mplayer").exists()
    assert not (root / "tests").exists()


def test_records_of_two_branches_never_conflict(root: Path) -> None:
    """Whatever becomes of the exports: one line is the user's to merge."""
    init = package(root)
    git(root, "init", "-q", "-b", "trunk")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Begin")
    for branch, name in (("one", "MyLayer"), ("two", "Other")):
        git(root, "checkout", "-q", "-b", branch, "trunk")
        new(name)
        git(root, "add", "-A")
        git(root, "commit", "-qm", name)
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "-q", "one", "-m", "Both")
    unmerged = git(root, "diff", "--name-only", "--diff-filter=U").split()
    assert unmerged == [init.relative_to(root).as_posix()]
    assert run("update", "--check")[0] == 0
