"""`make_plan`: what would be written, and what is refused before anything is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaffold.errors import MplayerError
from scaffold.plan import Change, Plan, make_plan


def plan(
    root: Path,
    *texts: str,
    edits: tuple[str, ...] = (),
    text: str = "x = 1\n",
    force: bool = False,
) -> Plan:
    return make_plan(
        root,
        {PurePosixPath(path): text for path in texts},
        {PurePosixPath(path): text for path in edits},
        force=force,
    )


def put(root: Path, path: str, data: bytes = b"old\n") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


@pytest.mark.parametrize(
    ("present", "edit", "force", "status"),
    [
        (None, False, False, "create"),
        (None, True, False, "create"),
        (b"x = 1\n", False, False, "identical"),
        (b"x = 1\n", True, True, "identical"),
        (b"x = 1\r\n", False, False, "conflict"),
        (b"x = 1\r\n", False, True, "update"),
        (b"\xff", True, False, "update"),
    ],
)
def test_status(
    tmp_path: Path, *, present: bytes | None, edit: bool, force: bool, status: str
) -> None:
    if present is not None:
        put(tmp_path, "a/b.py", present)
    paths = ("a/b.py",)
    made = plan(
        tmp_path, *(() if edit else paths), edits=paths if edit else (), force=force
    )
    assert made.changes == (
        Change(PurePosixPath("a/b.py"), present, b"x = 1\n", edit or force),
    )
    assert made.changes[0].status == status
    assert made.conflicts == (made.changes if status == "conflict" else ())


def test_json_is_stable(tmp_path: Path) -> None:
    put(tmp_path, "b.py")
    made = plan(tmp_path, "a/é.py", edits=("b.py",))
    assert json.loads(json.dumps(made.as_json())) == {
        "version": 1,
        "root": str(tmp_path),
        "files": [
            {"path": "a/é.py", "status": "create"},
            {"path": "b.py", "status": "update"},
        ],
    }


@pytest.mark.parametrize("path", ["/x.py", "../x.py", "a/../../x.py", "", ".", "a\0b"])
def test_a_path_that_leaves_the_root_is_refused(tmp_path: Path, path: str) -> None:
    for texts, edits in (((path,), ()), ((), (path,))):
        with pytest.raises(MplayerError, match="--layer-dir"):
            plan(tmp_path, *texts, edits=edits)


@pytest.mark.parametrize(
    ("obstacle", "path", "named"),
    [
        ("file a", "a/b/c.py", "'a'"),
        ("dangling a", "a/b.py", "'a'"),
        ("folder a.py", "a.py", "a folder"),
        ("dangling a.py", "a.py", "a link to nothing"),
        ("loop a.py", "a.py", "a.py"),
        ("pipe a.py", "a.py", "no regular file"),
        ("file A.py", "a.py", "'A.py'"),
        ("folder Pkg", "pkg/a.py", "'Pkg'"),
        ("file a/__init__.py", "a.py", "'a/__init__.py'"),
        ("file a.py", "a/__init__.py", "'a.py'"),
        ("nothing", "x" * 300 + ".py", "xxx"),
    ],
)
def test_what_is_in_the_way_is_named(
    tmp_path: Path, obstacle: str, path: str, named: str
) -> None:
    kind, _, name = obstacle.partition(" ")
    where = tmp_path / name
    if kind == "file":
        put(tmp_path, name)
    elif kind == "folder":
        where.mkdir()
    elif kind in ("dangling", "loop"):
        where.symlink_to("nowhere" if kind == "dangling" else where)
    elif kind == "pipe":
        os.mkfifo(where)
    with pytest.raises(MplayerError) as refusal:
        plan(tmp_path, path, force=True)
    assert named in str(refusal.value)
    assert path.partition("/")[0] in str(refusal.value)
    assert "--layer-dir" in str(refusal.value)


@pytest.mark.parametrize(
    "paths",
    [
        ("a.py", "A.py"),
        ("a.py", "a.py/b"),
        ("a.py", "a/__init__.py"),
        ("a/__init__.py", "a.py"),
        ("real.py", "link.py"),
    ],
)
def test_files_of_one_plan_do_not_clash(tmp_path: Path, paths: tuple[str, ...]) -> None:
    (tmp_path / "link.py").symlink_to(tmp_path / "real.py")
    with pytest.raises(MplayerError, match="--layer-dir"):
        plan(tmp_path, *paths)


@pytest.mark.parametrize("beside", ["a/notes.txt", "A/x", "b.py"])
def test_what_only_looks_like_a_clash_is_allowed(tmp_path: Path, beside: str) -> None:
    put(tmp_path, beside)
    assert plan(tmp_path, "a.py").changes[0].status == "create"


def test_a_module_that_is_there_stays_editable_beside_its_package(
    tmp_path: Path,
) -> None:
    put(tmp_path, "a/__init__.py")
    put(tmp_path, "a.py")
    assert plan(tmp_path, edits=("a.py",)).changes[0].status == "update"


def test_a_root_that_is_a_package_gains_an_export(tmp_path: Path) -> None:
    assert plan(tmp_path, edits=("__init__.py",)).changes[0].status == "create"


def test_a_folder_that_is_a_link_is_followed(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere", "a.py", b"x = 1\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "pkg").symlink_to(tmp_path / "elsewhere")
    made = plan(root, "pkg/a.py", "pkg/b.py")
    assert [change.status for change in made.changes] == ["identical", "create"]


@pytest.mark.parametrize("text", ["def", "return 1\n", "x = '\0'\n", "# \udc80\n"])
def test_a_module_that_is_no_python_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(MplayerError, match=r"'a\.py' would"):
        plan(tmp_path, "a.py", text=text)


def test_a_module_that_is_proven_is_not_parsed(tmp_path: Path) -> None:
    texts = {PurePosixPath("a.py"): "def", PurePosixPath("b.py"): "def"}
    assert make_plan(tmp_path, texts, {}, proven=list(texts)).changes
    with pytest.raises(MplayerError, match=r"'b\.py' would"):
        make_plan(tmp_path, texts, {}, proven=[PurePosixPath("a.py")])


def test_an_invalid_escape_is_not_reported(tmp_path: Path) -> None:
    assert plan(tmp_path, "a.py", text="'\\d'\n").changes


def test_an_unreadable_file_is_an_error_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    put(tmp_path, "a.py")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(MplayerError, match=r"'a\.py': Permission denied"):
        plan(tmp_path, "a.py")


def test_a_plan_writes_nothing(tmp_path: Path) -> None:
    plan(tmp_path, "a/b/c.py", edits=("a/__init__.py",))
    assert list(tmp_path.iterdir()) == []


def test_a_diff_reads_as_git_writes_it(tmp_path: Path) -> None:
    put(tmp_path, "b c.txt", "é\nkept\nold".encode())
    put(tmp_path, "same.txt", b"new\n")
    made = plan(tmp_path, "a.txt", "b c.txt", "same.txt", text="new\n", force=True)
    assert made.diff() == (
        "diff --git a/a.txt b/a.txt\n"
        "new file mode 100644\n"
        "--- /dev/null\n"
        "+++ b/a.txt\n"
        "@@ -0,0 +1 @@\n"
        "+new\n"
        "diff --git a/b c.txt b/b c.txt\n"
        "--- a/b c.txt\t\n"
        "+++ b/b c.txt\t\n"
        "@@ -1,3 +1 @@\n"
        "-é\n"
        "-kept\n"
        "-old\n"
        "\\ No newline at end of file\n"
        "+new\n"
    )


def test_a_conflict_is_in_the_diff(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", b"\xff\n")
    assert "-\ufffd\n+x = 1\n" in plan(tmp_path, "a.txt").diff()


LINES = st.lists(st.sampled_from(["a", "b\r", "é\x0c\u2028", "", "\\ No"]), max_size=6)
TEXTS = st.builds(
    lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"])
)


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patch")
@given(before=st.none() | TEXTS, after=TEXTS)
def test_git_applies_the_diff(
    tmp_path_factory: pytest.TempPathFactory, before: str | None, after: str
) -> None:
    root = tmp_path_factory.mktemp("patched")
    if before is not None:
        put(root, "a b.txt", before.encode())
    made = plan(root, "a b.txt", text=after, force=True)
    patch = made.diff().encode()
    if patch:
        subprocess.run(["git", "apply", "-"], cwd=root, input=patch, check=True)
    assert (root / "a b.txt").read_bytes() == after.encode()
