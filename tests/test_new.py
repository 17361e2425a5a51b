"""`mplayer new` as its users run it: files, messages and exit codes."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scaffold.cli import COMMANDS

GOLDEN = Path(__file__).parent / "golden"
MPLAYER = [sys.executable, "-m", "scaffold"]


def mplayer(
    *arguments: str, cwd: Path, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs the command line in `cwd`, without a terminal."""
    return subprocess.run(
        [*MPLAYER, *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its contents."""
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


GOLDEN_COMMANDS = {
    "my_layer": ["MyLayer", "--weights", "w,b"],
    "asker_dense": [
        "AskerDense",
        "--weights",
        "kernel,bias",
        "--arg",
        "activation:activation",
    ],
    "scalar_bias": ["ScalarBias", "--weights", "v[]=zeros", "--call", "inputs + v"],
    "everything": [
        "Everything",
        "--weights",
        "kernel[in,units]=truncated_normal(stddev=0.02), bias[units]:float32=zeros, "
        "total[units]:state=zeros, steps[]:int32:frozen=zeros",
        "--arg=units:int=8",
        "--arg=activation:activation=relu",
        "--arg=rate:float=0.5",
        "--arg=causal:bool=true",
        "--arg=mode:str=mean",
        "--call=activation(inputs @ kernel + bias) * rate + total",
        "--with=regularizers,constraints",
        "--doc=Shows every part of the grammar in one layer.",
    ],
}


@pytest.mark.parametrize("name", GOLDEN_COMMANDS)
def test_writes_the_golden_pair(name: str, tmp_path: Path) -> None:
    run = mplayer("new", *GOLDEN_COMMANDS[name], cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert tree(tmp_path) == tree(GOLDEN / name)


def test_says_what_where_why_and_what_next(tmp_path: Path) -> None:
    run = mplayer("new", "MyLayer", "--weights", "w,b", cwd=tmp_path)
    assert run.stdout == "created  my_layer.py\ncreated  test_my_layer.py\n"
    assert "The current folder is empty" in run.stderr
    assert "pytest test_my_layer.py" in run.stderr


@pytest.mark.parametrize("view", ["--dry-run", "--diff"])
def test_views_write_nothing(view: str, tmp_path: Path) -> None:
    run = mplayer("new", "MyLayer", "--weights", "w,b", view, cwd=tmp_path)
    assert run.returncode == 0
    assert tree(tmp_path) == {}
    assert "my_layer.py" in run.stdout
    assert "test_my_layer.py" in run.stdout


def test_diff_is_a_patch_that_git_applies(tmp_path: Path) -> None:
    run = mplayer("new", "MyLayer", "--weights", "w,b", "--diff", cwd=tmp_path)
    subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=run.stdout, text=True, check=True
    )
    assert tree(tmp_path) == tree(GOLDEN / "my_layer")


def test_json_reports_the_same_plan(tmp_path: Path) -> None:
    command = ["new", "MyLayer", "--weights", "w,b", "--json"]
    planned = json.loads(mplayer(*command, "--dry-run", cwd=tmp_path).stdout)
    assert tree(tmp_path) == {}
    done = json.loads(mplayer(*command, cwd=tmp_path).stdout)
    assert (planned.pop("written"), done.pop("written")) == (False, True)
    assert planned == done
    assert done["files"] == [
        {"path": path, "status": "create"}
        for path in (
            "my_layer.py",
            "test_my_layer.py",
            ".mplayer/my_layer.json",
            ".mplayer/my_layer.module.txt",
            ".mplayer/my_layer.test.txt",
        )
    ]


def test_second_run_is_identical(tmp_path: Path) -> None:
    command = ["new", "MyLayer", "--weights", "w,b"]
    mplayer(*command, cwd=tmp_path)
    before = tree(tmp_path)
    run = mplayer(*command, cwd=tmp_path)
    assert run.returncode == 0
    assert run.stdout == "identical  my_layer.py\nidentical  test_my_layer.py\n"
    assert tree(tmp_path) == before


def test_edited_file_is_a_conflict(tmp_path: Path) -> None:
    command = ["new", "MyLayer", "--weights", "w,b"]
    mplayer(*command, cwd=tmp_path)
    module = tmp_path / "my_layer.py"
    generated = module.read_text("utf-8")
    module.write_text("# mine\n" + generated, "utf-8")
    (tmp_path / "test_my_layer.py").unlink()
    before = tree(tmp_path)

    run = mplayer(*command, cwd=tmp_path)
    assert run.returncode == 1
    assert tree(tmp_path) == before
    assert "'my_layer.py' exists with other contents" in run.stderr
    assert "--diff" in run.stderr
    assert "--force" in run.stderr

    shown = mplayer(*command, "--diff", cwd=tmp_path)
    assert shown.returncode == 1
    assert "-# mine" in shown.stdout
    assert tree(tmp_path) == before

    assert mplayer(*command, "--force", cwd=tmp_path).returncode == 0
    assert module.read_text("utf-8") == generated


@pytest.mark.parametrize(
    ("arguments", "value", "way_out"),
    [
        (["MyLayer", "--weights", "weights,b"], "weights", "kernel"),
        (["MyLayer", "--weights", "w,b", "--kind", "dens"], "dens", "dense"),
        (["my_layer", "--weights", "w,b"], "my_layer", "MyLayer"),
        (
            ["MyLayer", "--weights", "w,b", "--layer-dir", "../up"],
            "../up",
            "--layer-dir",
        ),
        (
            ["MyLayer", "--weights", "w,b", "--with", "regularizer"],
            "regularizer",
            "--with",
        ),
    ],
)
def test_bad_input_is_an_error_that_teaches(
    arguments: list[str], value: str, way_out: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    run = mplayer("new", *arguments, cwd=tmp_path)
    assert run.returncode == 2
    assert run.stdout == ""
    assert value in run.stderr
    assert way_out in run.stderr
    assert "Traceback" not in run.stderr
    assert list(tree(tmp_path)) == ["pyproject.toml"]


def test_unknown_option_is_a_usage_error(tmp_path: Path) -> None:
    run = mplayer("new", "MyLayer", "--wieghts", "w", cwd=tmp_path)
    assert run.returncode == 2
    assert "--weights" in run.stderr
    assert tree(tmp_path) == {}


def test_without_a_terminal_it_takes_the_defaults(tmp_path: Path) -> None:
    run = mplayer("new", "MyLayer", cwd=tmp_path)
    assert run.returncode == 0
    assert "activation(inputs @ kernel + bias)" in tree(tmp_path)["my_layer.py"]


def test_src_layout_gets_module_test_and_export(tmp_path: Path) -> None:
    layers = tmp_path / "src" / "acme" / "layers"
    layers.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "acme"\n')
    (layers.parent / "__init__.py").write_text("")
    (layers / "__init__.py").write_text(
        'from .zeta import Zeta\n\n__all__ = ["Zeta"]\n', "utf-8"
    )
    (layers / "zeta.py").write_text("class Zeta: ...\n")
    (tmp_path / "tests").mkdir()

    run = mplayer("new", "MyLayer", "--weights", "w,b", cwd=tmp_path)
    assert run.returncode == 0
    after = tree(tmp_path)
    assert after["src/acme/layers/__init__.py"] == (
        "from .my_layer import MyLayer\nfrom .zeta import Zeta\n\n"
        '__all__ = ["MyLayer", "Zeta"]\n'
    )
    assert (
        "from acme.layers.my_layer import MyLayer"
        in (after["tests/layers/test_my_layer.py"])
    )
    assert "src/acme/layers/my_layer.py" in after
    assert "pip install -e ." in run.stderr


def test_what_is_said_is_right_where_the_user_stands(tmp_path: Path) -> None:
    """In a folder of the project commands and paths lead from there to its root."""
    root = tmp_path / "my team's"
    layers = root / "src" / "acme" / "layers"
    layers.mkdir(parents=True)
    (root / "pyproject.toml").write_text('[project]\nname = "acme"\n')
    (layers.parent / "__init__.py").write_text("")
    (layers / "__init__.py").write_text("")
    run = mplayer("new", "MyLayer", "--weights", "w,b", cwd=layers.parent)
    assert run.returncode == 0, run.stderr
    assert "Paths are from '../..'." in run.stderr
    assert "cd ../.. && pip install -e ." in run.stderr
    command = run.stderr.partition("Run the matrix:  ")[2].strip()
    assert command == "cd ../.. && pytest tests/layers/test_my_layer.py"
    with (layers / "my_layer.py").open("a") as file:
        file.write("# mine\n")
    again = ["new", "MyLayer", "--weights", "w"]
    for arguments in (again, ["update", "MyLayer", "--weights", "w", "--check"]):
        run = mplayer(*arguments, cwd=layers.parent)
        assert run.returncode == 1, run.stderr
        assert "Paths are from '../..'." in run.stderr
        assert "Paths are" not in mplayer(*arguments, cwd=root).stderr
    assert "Paths are" not in mplayer("update", "MyLayer", cwd=layers.parent).stderr
    report = json.loads(mplayer(*again, "--json", cwd=layers.parent).stdout)
    assert report["command"] == command


def test_a_command_leads_to_the_root_also_behind_a_link(tmp_path: Path) -> None:
    """There a shell takes `cd ..` back along the link."""
    (tmp_path / "root/tests").mkdir(parents=True)
    (tmp_path / "root/pyproject.toml").write_text("")
    (tmp_path / "root/tests/conftest.py").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "root/tests")
    command = shlex.join([*MPLAYER, "new", "MyLayer", "--weights", "w,b"])
    run = subprocess.run(
        ["bash", "-c", f"cd link && {command}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    enter, _, test = run.stderr.partition("Run the matrix:  ")[2].partition(" && ")
    found = subprocess.run(
        ["bash", "-c", f"cd link && {enter} && ls {test.split()[-1]}"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr


def test_weights_that_no_call_can_save_are_asked_again(tmp_path: Path) -> None:
    terminal = Terminal("new", "MyLayer", cwd=tmp_path)
    for wrong, message in (
        ("nosuch", "'nosuch' has no shape"),
        ("n[in]:int32", "'n' is int32, which has no gradient"),
    ):
        terminal.wait_for("Weights [kernel, bias]: ")
        terminal.answer(wrong)
        terminal.wait_for(message)
    terminal.wait_for("Weights [kernel, bias]: ")
    terminal.answer("v[in]")
    terminal.wait_for("Constructor arguments")
    terminal.answer("v:int")
    terminal.wait_for("'v' is a weight too")
    terminal.wait_for("]: ")
    terminal.answer("")
    terminal.wait_for("What `call` returns: ")
    terminal.answer("activation(inputs * v)")
    assert terminal.end() == 0
    assert "activation(inputs * v)" in (tmp_path / "my_layer.py").read_text()


def test_update_reports_as_json_also_where_nothing_was_generated(
    tmp_path: Path,
) -> None:
    run = mplayer("update", "--check", "--json", cwd=tmp_path)
    assert run.returncode == 0
    report = json.loads(run.stdout)
    assert (report["files"], report["stale"], report["findings"]) == ([], [], [])
    assert not report["written"]


def test_version_and_help(tmp_path: Path) -> None:
    assert mplayer("--version", cwd=tmp_path).stdout.startswith("mplayer ")
    assert "--weights" in mplayer("new", "--help", cwd=tmp_path).stdout
    listed = mplayer("--help", cwd=tmp_path)
    assert listed.returncode == 0
    assert all(f"  {command} " in listed.stdout for command in COMMANDS)
    assert "mean 'new'?" in mplayer("nwe", cwd=tmp_path).stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_narrow_terminal_encoding_is_no_traceback(
    encoding: str, tmp_path: Path
) -> None:
    folder = tmp_path / "größe_層"
    folder.mkdir()
    run = subprocess.run(
        [
            *MPLAYER,
            "new",
            "MyLayer",
            "--weights",
            "w,b",
            "--doc",
            "Größe → 層",
            "--diff",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0
    assert b"Traceback" not in run.stderr


class Terminal:
    """A command on a pseudo-terminal, answered as a person would."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execv(sys.executable, [*MPLAYER, *arguments])  # noqa: S606
        self.seen = ""

    def wait_for(self, text: str) -> None:
        while text not in self.seen:
            read = self._read()
            assert read, self.seen
            self.seen += read
        self.seen = self.seen.split(text, 1)[1]

    def _read(self) -> str:
        # A question that no one answers must not hold up the tests.
        assert select.select([self.terminal], [], [], 60)[0], self.seen
        return os.read(self.terminal, 4096).decode()

    def answer(self, text: str) -> None:
        os.write(self.terminal, text.encode() + b"\n")

    def press(self, key: bytes) -> None:
        # A key that comes while Python prepares to read can be lost.
        time.sleep(0.3)
        os.write(self.terminal, key)

    def end(self) -> int:
        try:
            while self._read():
                pass
        except OSError:  # Linux says so where the other end has closed
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_on_a_terminal_it_asks(tmp_path: Path) -> None:
    terminal = Terminal("new", "MyLayer", cwd=tmp_path)
    terminal.wait_for("Weights [kernel, bias]: ")
    terminal.answer("weights, b")
    terminal.wait_for("'weights'")
    terminal.wait_for("Weights [kernel, bias]: ")
    terminal.answer("w, b")
    terminal.wait_for("Constructor arguments [activation:activation]: ")
    terminal.answer("activation:activation=relu")
    terminal.wait_for("[activation(inputs @ w + b)]: ")
    terminal.answer("")
    assert terminal.end() == 0
    asked = tree(tmp_path)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    mplayer(
        *["new", "MyLayer", "--weights", "w, b", "--arg", "activation:activation=relu"],
        cwd=tmp_path,
    )
    assert asked == tree(tmp_path)


def test_interrupted_question_writes_nothing(tmp_path: Path) -> None:
    terminal = Terminal("new", "MyLayer", cwd=tmp_path)
    terminal.wait_for("Weights [kernel, bias]: ")
    terminal.press(b"\x03")
    assert terminal.end() == 3
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    "redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "| head -0"]
)
def test_closed_streams_end_in_no_traceback(redirection: str, tmp_path: Path) -> None:
    command = shlex.join([*MPLAYER, "new", "MyLayer", "--weights", "w,b"])
    run = subprocess.run(
        ["bash", "-c", f"{command} {redirection}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in run.stderr
    assert "Broken pipe" not in run.stderr
    assert {"my_layer.py", "test_my_layer.py"} <= {*tree(tmp_path)}


def test_a_folder_that_is_gone_ends_in_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    command = shlex.join([*MPLAYER, "new", "MyLayer", "--weights", "w,b"])
    run = subprocess.run(
        ["bash", "-c", f"rmdir {folder} && {command}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "No such file or directory" in run.stderr


def test_an_init_that_is_a_folder_ends_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "src/acme/layers/__init__.py").mkdir(parents=True)
    (tmp_path / "src/acme/__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    before = tree(tmp_path)
    run = mplayer("new", "MyLayer", "--weights", "w,b", cwd=tmp_path)
    assert run.returncode == 2
    assert "Traceback" not in run.stderr
    assert "__init__.py" in run.stderr
    assert tree(tmp_path) == before


def test_control_c_at_any_moment_is_silent(tmp_path: Path) -> None:
    """Also while modules are imported, which is most of a run."""
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        with subprocess.Popen(
            [*MPLAYER, "new", "MyLayer", "--weights", "w,b"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as run:
            time.sleep(0.03 + 0.01 * number)
            run.send_signal(signal.SIGINT)
            _, stderr = run.communicate()
        # Before `main` is called, Python itself is starting, on a busy machine for long.
        assert "in main" not in stderr
        written = {*tree(folder)}
        assert not written or len(written) == 5


def test_runs_at_once_lose_no_export(tmp_path: Path) -> None:
    """Each writes its export, or says that it could not."""
    (tmp_path / "src/acme/layers").mkdir(parents=True)
    for init in ("src/acme/__init__.py", "src/acme/layers/__init__.py"):
        (tmp_path / init).write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    names = ["Aa", "Bb", "Cc", "Dd"]
    for _ in range(4):
        runs = {
            name: subprocess.Popen(
                [*MPLAYER, "new", name, "--weights", "w,b"],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            for name in names
        }
        said = {name: run.communicate()[1] for name, run in runs.items()}
        init = (tmp_path / "src/acme/layers/__init__.py").read_text()
        for name, run in runs.items():
            assert run.returncode in (0, 2)
            assert "Traceback" not in said[name]
            if run.returncode == 0:
                assert f"import {name}" in init
        if all(run.returncode == 0 for run in runs.values()):
            break
