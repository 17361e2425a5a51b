"""The line text -> spec -> texts -> plan -> disk, held by its imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import scaffold

PACKAGE = Path(scaffold.__file__).parent

# Each module, and what it may import of ours. What is not here may import nothing.
ALLOWED = {
    "errors": set(),
    "spec": set(),
    "names": {"errors"},
    "initializers": {"errors", "spec"},
    "kinds": {"errors"},
    "functions": set(),
    "printer": set(),
    "tape": {"functions"},
    "rehearse": {"tape", "functions"},
    "call": {
        *("errors", "spec", "initializers", "names", "functions", "printer"),
        *("rehearse", "tape"),
    },
    "grammar": {
        *("errors", "spec", "names", "initializers", "kinds", "call", "functions"),
    },
    "manifest": {"errors", "grammar", "kinds", "spec"},
    "rendering": {"errors", "spec", "kinds"},
    "exports": {"errors"},
    "project": {"errors", "kinds"},
    "plan": {"errors"},
    "journal": {"errors", "plan"},
    "publish": {"errors", "plan", "journal"},
    "record": {"errors", "spec"},
    "generate": {"errors", "exports", "plan", "record", "rendering", "project", "spec"},
    "merge": {"errors", "plan"},
    "locate": {"record"},
    "update": {
        *("errors", "grammar", "locate", "merge", "plan", "record", "rendering"),
    },
    "remove": {"errors", "exports", "locate", "plan", "record"},
    "team": {"errors", "extension", "kinds"},
    "extension": {
        *("errors", "generate", "grammar", "kinds", "names", "project", "record"),
        *("rendering", "spec"),
    },
    "__init__": {"errors", "grammar", "rendering", "spec"},
    "__main__": {"cli"},
}


def imports(path: Path) -> set[str]:
    """The modules of ours that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "scaffold"
        ):
            parts = (node.module or "").split(".")
            names = parts[1:2] or [alias.name for alias in node.names]
            found |= set(names)
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("scaffold."):
                    found.add(alias.name.split(".")[1])
    return found - {"__version__"}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem
)
def test_imports_go_one_way(path: Path) -> None:
    assert imports(path) <= ALLOWED[path.stem]


def test_only_the_command_line_imports_the_command_line() -> None:
    for path in PACKAGE.glob("*.py"):
        assert path.stem == "__main__" or "cli" not in imports(path)


def test_new_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['mplayer', 'new', 'MyLayer', '--weights', 'w,b']\n"
        "from scaffold.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'numpy', 'tensorflow', 'keras', 'cookiecutter',\n"
        "         'pydantic', 'scaffold.rehearse', 'scaffold.cli.update'}\n"
        "heavy &= set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr.splitlines()[-1] == "[]"
