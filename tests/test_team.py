"""Team repositories, and the two doors to them: `mplayer init` and `cookiecutter`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_new import GOLDEN, Terminal, mplayer, tree

REPOSITORY = Path(__file__).parents[1]
# mplayer's modules come from the template's own path, or not at all.
ALONE = """
import sys
from importlib.machinery import PathFinder

here = sys.argv.pop(1)  # where an editable install leads
sys.path = [place for place in sys.path if place != here]
installed = {*sys.path}

class Alone:
    def find_spec(self, name, path=None, target=None):
        if name in ("scaffold", "typer"):
            added = [place for place in sys.path if place not in installed]
            spec = PathFinder.find_spec(name, added)
            if spec is None:
                raise ModuleNotFoundError(name)
            return spec

sys.meta_path.insert(0, Alone())
from cookiecutter.cli import main
main()
"""
TEAM = "A repository for a team's layers (templates/team-repo)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder for cookiecutter, which keeps clones and answers there."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def cookiecutter(
    source: str, *options: str, cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Runs cookiecutter as if nothing of mplayer's were installed beside it."""
    return subprocess.run(
        [sys.executable, "-c", ALONE, str(REPOSITORY), source, "--no-input", *options],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def clone(folder: Path) -> str:
    """A commit of the working tree in a repository of its own, as a git URL."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, files):
        if name.startswith(("scaffold/", "templates/", "cookiecutter.json")):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((REPOSITORY / name).read_bytes())
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return f"git+file://{folder}"


LAYER_ANSWERS = {
    "defaults": ([], ["MyLayer", "--weights", "w,b"], "my_layer"),
    "all": (
        [
            *("name=AskerDense", "weights=kernel[in,units]=he_normal, bias[units]"),
            *("arguments=activation:activation=relu, rate:float=0.5", "kind=dense"),
            *("call=activation(inputs @ kernel + bias) * rate", "doc=Asks."),
            *("with=regularizers", "folder=elsewhere"),
        ],
        [
            *("AskerDense", "--weights", "kernel[in,units]=he_normal, bias[units]"),
            *("--arg", "activation:activation=relu", "--arg", "rate:float=0.5"),
            *("--call", "activation(inputs @ kernel + bias) * rate", "--doc", "Asks."),
            *("--with", "regularizers", "--kind", "dense"),
        ],
        "elsewhere",
    ),
    "keras": (
        ["dialect=keras", "kind=norm", "weights=gamma,beta"],
        [
            *("MyLayer", "--weights", "gamma,beta"),
            *("--kind", "norm", "--dialect", "keras"),
        ],
        "my_layer",
    ),
}


@pytest.mark.parametrize("answers", LAYER_ANSWERS)
@pytest.mark.parametrize("source", ["path", "git", "folder", "directory"])
def test_both_doors_give_the_same_pair(
    answers: str, source: str, home: Path, out: Path, tmp_path: Path
) -> None:
    extra, command, folder = LAYER_ANSWERS[answers]
    options: list[str] = []
    where = str(REPOSITORY)
    if source == "git":
        where = clone(tmp_path / "clone")
    elif source == "folder":
        where += "/templates/layer"
    elif source == "directory":
        options = ["--directory", "templates/layer"]
    run = cookiecutter(where, *options, *extra, cwd=out)
    assert run.returncode == 0, run.stdout + run.stderr
    mine = tmp_path / "mine"
    mine.mkdir()
    assert mplayer("new", *command, cwd=mine).returncode == 0
    assert tree(out / folder) == tree(mine)
    assert [path.name for path in out.iterdir()] == [folder]
    assert home.is_dir()


TEAM_ANSWERS: dict[str, tuple[list[str], list[str]]] = {
    "defaults": (["slug=acme-layers"], ["acme-layers"]),
    "all": (
        [
            *("slug=Acme.Vision", "package=vision", "description=Sees 'all' at once."),
            *("author=Grüße & Co", "license=BSD-3-Clause", "name=Gain"),
            *("weights=gamma", "arguments=rate:float=0.5", "kind=scale"),
            *("call=inputs * gamma * rate", "with=constraints", "doc=Gains."),
            "mplayer=mplayer-scaffold @ git+https://example.org/mplayer@main",
        ],
        [
            *("Acme.Vision", "--package", "vision"),
            *("--description", "Sees 'all' at once.", "--author", "Grüße & Co"),
            *("--license", "BSD-3-Clause", "--layer", "Gain", "--weights", "gamma"),
            *("--arg", "rate:float=0.5", "--kind", "scale"),
            *("--call", "inputs * gamma * rate", "--with", "constraints"),
            *("--doc", "Gains.", "--mplayer"),
            "mplayer-scaffold @ git+https://example.org/mplayer@main",
        ],
    ),
    "keras": (
        ["slug=acme-layers", "dialect=keras", "author=Acme"],
        ["acme-layers", "--dialect", "keras", "--author", "Acme"],
    ),
}


@pytest.mark.parametrize("answers", TEAM_ANSWERS)
@pytest.mark.parametrize("source", ["path", "git", "directory"])
@pytest.mark.usefixtures("home")
def test_both_doors_give_the_same_repository(
    answers: str, source: str, out: Path, tmp_path: Path
) -> None:
    extra, command = TEAM_ANSWERS[answers]
    options = [f"template={TEAM}"]
    where = str(REPOSITORY)
    if source == "git":
        where = clone(tmp_path / "clone")
    elif source == "directory":
        options = ["--directory", "templates/team-repo"]
    run = cookiecutter(where, *options, *extra, cwd=out)
    assert run.returncode == 0, run.stdout + run.stderr
    mine = tmp_path / "mine"
    mine.mkdir()
    made = mplayer("init", *command, cwd=mine)
    assert made.returncode == 0, made.stderr
    assert tree(out) == tree(mine)


@pytest.mark.parametrize(
    "command", [["acme-layers"], ["keras-layers", "--dialect", "keras"]]
)
def test_init_writes_the_golden_repository(command: list[str], tmp_path: Path) -> None:
    run = mplayer("init", *command, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert tree(tmp_path / command[0]) == tree(GOLDEN / command[0])
    assert "pip install -e '.[test]' && pytest" in run.stderr
    assert run.stdout.splitlines()[0] == "created  .gitattributes"


@pytest.mark.parametrize("answers", TEAM_ANSWERS)
def test_the_repository_is_clean_and_stays_so(answers: str, tmp_path: Path) -> None:
    _, command = TEAM_ANSWERS[answers]
    assert mplayer("init", *command, cwd=tmp_path).returncode == 0
    root = tmp_path / command[0]
    another = mplayer("new", "AnotherLayer", "--weights", "w,b", cwd=root)
    assert another.returncode == 0, another.stderr
    package = "vision" if answers == "all" else "acme_layers"
    assert another.stdout.splitlines() == [
        f"created  src/{package}/layers/another_layer.py",
        "created  tests/layers/test_another_layer.py",
        f"updated  src/{package}/layers/__init__.py",
    ]
    module = (root / f"src/{package}/layers/another_layer.py").read_text("utf-8")
    assert ("import tensorflow" in module) == (answers != "keras")
    for tool in (
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["scaffold", "update", "--check"],
    ):
        run = subprocess.run(
            [sys.executable, "-m", *tool],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr


def test_the_repository_stays_clean_without_its_first_layer(tmp_path: Path) -> None:
    assert mplayer("init", "acme-layers", cwd=tmp_path).returncode == 0
    root = tmp_path / "acme-layers"
    assert mplayer("remove", "MyLayer", cwd=root).returncode == 0
    for tool in (["format", "--check", "."], ["check", "."]):
        command = [sys.executable, "-m", "ruff", *tool]
        run = subprocess.run(
            command, cwd=root, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr


WRONG_ANSWERS = {
    "a name that escapes": ("layer", "name=../escaped", "NAME: '../escaped'"),
    "a folder that escapes": ("layer", "folder=../escaped", "folder: '../escaped'"),
    "an absolute folder": ("layer", "folder=/tmp/escaped", "folder: '/tmp/escaped'"),
    "a hidden folder": ("layer", "folder=.git", "folder: '.git'"),
    "no folder": ("layer", "folder= ", "folder: "),
    "a keyword": ("layer", "name=class", "NAME: 'class' is a word of Python's own"),
    "a reserved weight": ("layer", "weights=weights", "'weights' is a name that"),
    "an unknown kind": ("layer", "kind=desne", "there is no kind 'desne'"),
    "a call that fits nothing": ("layer", "call=inputs @", "--call"),
    "an option": ("layer", "with=regularisers", "'regularisers'"),
    "a slug that escapes": ("team", "slug=../escaped", "NAME: '../escaped'"),
    "a slug of two": ("team", "slug=a/b", "NAME: 'a/b'"),
    "a package's keyword": ("team", "package=import", "--package: 'import'"),
    "a package that hides": ("team", "package=tensorflow", "would hide the package"),
    "a standard package": ("team", "package=json", "would hide Python's own module"),
    "two lines": ("team", "author=a\nb", "author: "),
    "a quote": ("team", 'description="""', "description: "),
    "a template": ("team", "description=a {b}", "description: "),
    "a first layer": ("team", "weights=dtype", "'dtype' is a name that"),
}


@pytest.mark.parametrize("case", WRONG_ANSWERS)
@pytest.mark.usefixtures("home")
def test_a_wrong_answer_leaves_nothing_behind(
    case: str, out: Path, tmp_path: Path
) -> None:
    template, answer, message = WRONG_ANSWERS[case]
    before = sorted(path for path in tmp_path.iterdir() if path.name != "home")
    options = [f"template={TEAM}"] if template == "team" else []
    run = cookiecutter(str(REPOSITORY), *options, answer, cwd=out)
    assert run.returncode == 1
    assert message in run.stdout
    assert "Traceback" not in run.stdout + run.stderr
    assert tree(out) == {}
    assert not [*out.iterdir()]
    assert before == sorted(p for p in tmp_path.iterdir() if p.name != "home")


@pytest.mark.usefixtures("home")
def test_a_clone_renders_with_its_own_code(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another mplayer may be installed where cookiecutter runs."""
    (tmp_path / "other" / "scaffold").mkdir(parents=True)
    (tmp_path / "other" / "scaffold" / "__init__.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "other"))
    template = REPOSITORY / "templates" / "layer"
    run = subprocess.run(
        [sys.executable, "-m", "cookiecutter", str(template), "--no-input"],
        cwd=out,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert {"my_layer/my_layer.py", "my_layer/test_my_layer.py"} <= {*tree(out)}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("door", ["mplayer", "cookiecutter"])
def test_a_kind_brings_its_weights(door: str, out: Path) -> None:
    if door == "mplayer":
        run = mplayer("init", "acme-layers", "--kind", "norm", cwd=out)
    else:
        run = cookiecutter(str(REPOSITORY), f"template={TEAM}", "kind=norm", cwd=out)
    assert run.returncode == 0, run.stdout + run.stderr
    module = (out / "acme-layers/src/acme_layers/layers/my_layer.py").read_text()
    assert "gamma" in module
    assert "beta" in module


def test_on_a_terminal_init_asks_again_where_an_answer_is_wrong(tmp_path: Path) -> None:
    """A wrong answer costs that answer, and not those before it."""
    terminal = Terminal("init", "acme-layers", cwd=tmp_path)
    dialogue = [
        ("[acme_layers]: ", "json", "would hide Python's own module", ""),
        ("dtype policy.]: ", "Our {layers}.", "holds '{'", "Our layers."),
        ("[The acme-layers authors]: ", "", "", "Us"),
        ("[Apache-2.0]: ", "GPL", "'GPL' is none of Apache-2.0", "MIT"),
        ("[MyLayer]: ", "class", "'class' is a word of Python's own", "MyNorm"),
        ("(tf, keras) [tf]: ", "jax", "'jax' is none of tf, keras", ""),
        ("what fits the weights): ", "nrom", "mean 'norm'?", "norm"),
        ("[gamma, beta]: ", "gamma, class", "'class' is a keyword", ""),
        ("(may be empty): ", "units:number", "the unknown type 'number'", ""),
        ("what the kind does): ", "inputs @", "--call", ""),
        ("(may be empty): ", "regularisers", "'regularisers'", "regularizers"),
        ("(may be empty): ", '"', "--doc", "Ours."),
        ("[mplayer-scaffold==", " ", "mplayer: is empty", ""),
    ]
    for question, wrong, message, right in dialogue:
        terminal.wait_for(question)
        if wrong:
            terminal.answer(wrong)
            terminal.wait_for(message)
            terminal.wait_for(question)
        terminal.answer(right)
    assert terminal.end() == 0
    asked = tree(tmp_path)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    said = [
        *("--description", "Our layers.", "--author", "Us", "--license", "MIT"),
        *("--layer", "MyNorm", "--kind", "norm", "--with", "regularizers"),
        *("--doc", "Ours."),
    ]
    assert mplayer("init", "acme-layers", *said, cwd=tmp_path).returncode == 0
    assert asked == tree(tmp_path)


@pytest.mark.parametrize("key", [b"\x03", b"\x04"])
def test_leaving_the_questions_of_init_writes_nothing(
    key: bytes, tmp_path: Path
) -> None:
    terminal = Terminal("init", "acme-layers", cwd=tmp_path)
    terminal.wait_for("The package that is imported [acme_layers]: ")
    terminal.press(key)
    assert terminal.end() == 3
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["../escaped"], "NAME: '../escaped'"),
        (["a", "--license", "GPL"], "--license: 'GPL' is none of Apache-2.0, MIT"),
        (["a", "--dialect", "jax"], "--dialect: 'jax' is none of tf, keras"),
        (["a", "--dialect", "keras", "--kind", "graph"], "cannot be written in the"),
        (["a", "--package", "import"], "--package: 'import'"),
        (["a", "--layer", "class"], "NAME: 'class'"),
        (["a", "--weights", "weights"], "'weights' is a name"),
        (["a", "--description", "{{ 1 }}"], "description: '{{ 1 }}' holds '{'"),
        (["a", "--author", "a\nb"], "author: "),
        (["a", "--author", ""], "author: is empty"),
        (["a", "--mplayer", " "], "--mplayer: is empty"),
        (["a", "--mplayer", "$(touch x)"], "--mplayer: '$(touch x)' holds '$'"),
        (["a", "--mplayer", "it's"], 'holds "\'"'),
        (["tensorflow"], "--package: 'tensorflow' would hide the package"),
    ],
)
def test_init_refuses_what_cannot_be(
    command: list[str], message: str, tmp_path: Path
) -> None:
    run = mplayer("init", *command, cwd=tmp_path)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("view", ["--dry-run", "--diff"])
def test_views_of_init_write_nothing(view: str, tmp_path: Path) -> None:
    run = mplayer("init", "acme-layers", view, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "src/acme_layers/layers/my_layer.py" in run.stdout
    assert not [*tmp_path.iterdir()]


def test_init_reports_as_json(tmp_path: Path) -> None:
    run = mplayer("init", "acme-layers", "--json", cwd=tmp_path)
    report = json.loads(run.stdout)
    assert report["written"]
    assert {file["status"] for file in report["files"]} == {"create"}
    written = {file["path"] for file in report["files"]}
    assert written == {*tree(tmp_path / "acme-layers")}


def test_init_never_overwrites_unasked(tmp_path: Path) -> None:
    folder = tmp_path / "acme-layers"
    folder.mkdir()
    (folder / "README.md").write_text("mine\n")
    (folder / "notes.txt").write_text("mine\n")
    run = mplayer("init", "acme-layers", cwd=tmp_path)
    assert run.returncode == 1
    assert "'README.md' exists with other contents" in run.stderr
    assert tree(folder) == {"README.md": "mine\n", "notes.txt": "mine\n"}
    assert mplayer("init", "acme-layers", "--force", cwd=tmp_path).returncode == 0
    assert tree(folder) == {**tree(GOLDEN / "acme-layers"), "notes.txt": "mine\n"}


def test_init_leaves_the_home_folder_alone(home: Path, out: Path) -> None:
    (home / ".cookiecutterrc").write_text("default_context:\n  author: Someone\n")
    assert mplayer("init", "acme-layers", cwd=out).returncode == 0
    assert tree(out / "acme-layers") == tree(GOLDEN / "acme-layers")
    assert [path.name for path in home.iterdir()] == [".cookiecutterrc"]
