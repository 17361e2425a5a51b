"""Where the files of a layer go, and how its test imports it."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from scaffold.errors import MplayerError, nearest
from scaffold.kinds import DIALECTS

_ROOT_MARKERS = ("pyproject.toml", "setup.cfg", "setup.py", ".git", ".mplayer")
_SETTINGS = ("layer-dir", "test-dir", "templates", "dialect")
_TABLE = "[tool.mplayer]"
# Folders that may hold an `__init__.py` and yet are not what a project is about.
# fmt: off
_NO_PACKAGES = frozenset({
    "benchmark", "benchmarks", "build", "dist", "doc", "docs", "example", "examples",
    "notebooks", "samples", "scripts", "test", "testing", "tests", "tools",
})
# fmt: on


class Placement(NamedTuple):
    """Where the module and the test of a layer go. Paths are relative to `root`."""

    root: Path
    layer_dir: PurePosixPath
    test_dir: PurePosixPath
    package: str
    """Dotted prefix of the module where the test imports it; "": it stands alone."""
    init: PurePosixPath | None
    """The `__init__.py` that gains the export; None where `layer_dir` is no package."""
    packages: tuple[PurePosixPath, ...]
    """Further `__init__.py` files that new folders need, empty."""
    reason: str
    """Why there, in one sentence."""
    command: str
    """What runs the test from `root`: `pytest`, or `python -m pytest`."""
    command_hint: str
    """What must run once before: `pip install -e .`, or ""."""


def place(
    cwd: Path, layer_dir: str | None = None, test_dir: str | None = None
) -> Placement:
    """Decides where a new layer and its test go.

    A flag wins over `[tool.mplayer]` in pyproject.toml, that over the layers package
    that the project has, that over a new one in its one package. Else, and in an empty
    folder if no setting says where, both files go to the current folder.

    Args:
        cwd: The current folder.
        layer_dir: `--layer-dir`, relative to `cwd`.
        test_dir: `--test-dir`, relative to `cwd`.

    Returns:
        The place; nothing has been written.

    Raises:
        MplayerError: If a folder lies outside the project or cannot be imported from,
            if pyproject.toml is broken, or if several packages could be meant.
    """
    try:
        return _place(Path(os.path.normpath(cwd.absolute())), layer_dir, test_dir)
    except OSError as error:
        raise MplayerError(
            f"'{error.filename}': {error.strerror}. Choose another folder with"
            " --layer-dir or --test-dir."
        ) from error


def team_templates(cwd: Path, flag: str | None = None) -> Path | None:
    """Returns a team's folder of templates: that of the flag, or of `[tool.mplayer]`.

    Args:
        cwd: The current folder.
        flag: `--templates`, relative to `cwd`.

    Raises:
        MplayerError: If there is no such folder, or it is not laid out as ours.
    """
    said = _templates(cwd, flag)
    if said is None:
        return None
    folder, origin = said
    if not (folder / "layer").is_dir():
        raise MplayerError(
            f"{origin}: '{folder}' holds no folder 'layer' with templates. Begin with a"
            " copy of ours: mplayer kinds --eject dense"
        )
    return folder


def project_dialect(cwd: Path) -> str:
    """Returns the dialect of a project's new layers: `[tool.mplayer]` says, or tf.

    Args:
        cwd: The current folder.

    Raises:
        MplayerError: If there is no such dialect.
    """
    root = _root(cwd)
    return _settings(root, _read_pyproject(root)).get("dialect", DIALECTS[0])


def has_templates(cwd: Path) -> bool:
    """Whether `[tool.mplayer]` names a team's templates, which all commands take.

    Args:
        cwd: The current folder.
    """
    return _templates(cwd, None) is not None


def ejected_to(cwd: Path, flag: str | None = None) -> tuple[Path, PurePosixPath]:
    """Returns the project's root, and in it the team's folder of templates.

    Args:
        cwd: The current folder.
        flag: `--templates`, relative to `cwd`.

    Raises:
        MplayerError: If there is none, or it lies outside the project.
    """
    said = _templates(cwd, flag)
    if said is None:
        raise MplayerError(
            "Where to? Give a folder, as in --templates templates, and keep it in"
            f' pyproject.toml: {_TABLE} templates = "templates".'
        )
    folder, origin = said
    root = _root(cwd)
    if not folder.is_relative_to(root):
        raise MplayerError(
            f"{origin}: '{folder}' lies outside the project '{root}'. Give a folder"
            " inside it."
        )
    return root, _relative(root, folder)


def _templates(cwd: Path, flag: str | None) -> tuple[Path, str] | None:
    """The folder that is said, and where it is."""
    root = _root(cwd)
    setting = _settings(root, _read_pyproject(root)).get("templates")
    if flag is not None:
        return Path(os.path.normpath(cwd.absolute() / flag)), "--templates"
    if setting is not None:
        where = f"{_TABLE} templates in pyproject.toml"
        return Path(os.path.normpath(root / setting)), where
    return None


def _root(cwd: Path) -> Path:
    cwd = Path(os.path.normpath(cwd.absolute()))
    root = _project_root(cwd)
    if _is_empty(cwd) and "layer-dir" not in _settings(root, _read_pyproject(root)):
        return cwd
    return root


def _place(cwd: Path, layer_dir: str | None, test_dir: str | None) -> Placement:
    root = _root(cwd)
    pyproject = _read_pyproject(root)
    settings = _settings(root, pyproject)
    layers_said = _said(root, cwd, "layer-dir", layer_dir, settings)
    tests_said = _said(root, cwd, "test-dir", test_dir, settings)

    found = None if layers_said else _find(root, cwd)
    layers, reason = layers_said or found or (cwd, _here(cwd))
    new_layers = _new_packages(layers)
    if not _is_package(layers) and (
        found or (layers_said and not layer_dir and _is_package(layers.parent))
    ):
        new_layers = (layers,)  # a plain folder may be there already
    in_package = _is_package(layers) or layers in new_layers
    if tests_said:
        tests, _ = tests_said
    elif in_package and (layers_said or found):
        tests = _mirrored(root, layers, new_layers)
    else:
        tests = layers
    created = (*new_layers, *_new_packages(tests))

    import_path = {*_python_path(root, pyproject), _import_base(tests, created)}
    base = _import_base(layers, created)
    if not in_package and base not in import_path:
        # A test elsewhere reaches a plain folder as a namespace package.
        base = next((path for path in layers.parents if path in import_path), root)
    importable = base in import_path
    init = layers / "__init__.py"
    inits = dict.fromkeys(folder / "__init__.py" for folder in created)
    return Placement(
        root=root,
        layer_dir=_relative(root, layers),
        test_dir=_relative(root, tests),
        package=_dotted(layers.relative_to(base)),
        init=_relative(root, init) if in_package else None,
        packages=tuple(_relative(root, path) for path in inits if path != init),
        reason=reason,
        command="python -m pytest" if base == root and not importable else "pytest",
        command_hint="" if importable or base == root else "pip install -e .",
    )


def _is_empty(folder: Path) -> bool:
    return all(entry.name.startswith(".") for entry in folder.iterdir())


def _here(cwd: Path) -> str:
    if _is_empty(cwd):
        return "The current folder is empty."
    return "No package was found, so both files go to the current folder."


def _project_root(cwd: Path) -> Path:
    for folder in (cwd, *cwd.parents):
        if any((folder / marker).exists() for marker in _ROOT_MARKERS):
            return folder
    return cwd


def _read_pyproject(root: Path) -> dict[str, object]:
    path = root / "pyproject.toml"
    if not path.is_file():
        return {}
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise MplayerError(f"'{path}' cannot be read: {error}.") from error


def _look_up(table: object, *keys: str) -> object:
    """The value under nested keys, or None: other tools' tables may hold anything."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _settings(root: Path, pyproject: dict[str, object]) -> dict[str, str]:
    where = f"'{root / 'pyproject.toml'}': {_TABLE}"
    table = _look_up(pyproject, "tool", "mplayer")
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise MplayerError(f"{where} must be a table. Received: {table!r}.")
    for key, value in table.items():
        if key not in _SETTINGS:
            raise MplayerError(
                f"{where} has no key '{key}'; its keys are {', '.join(_SETTINGS)}."
                f"{nearest(key, _SETTINGS)}"
            )
        if key == "dialect":
            if value not in DIALECTS:
                raise MplayerError(
                    f"{where} {key} must be {' or '.join(DIALECTS)}. Received:"
                    f" {value!r}."
                )
        elif not isinstance(value, str) or Path(value).anchor:
            raise MplayerError(
                f"{where} {key} must be a folder relative to that file, such as"
                f" 'src/pkg/layers'. Received: {value!r}."
            )
    return table


def _said(
    root: Path, cwd: Path, key: str, flag: str | None, settings: dict[str, str]
) -> tuple[Path, str] | None:
    """The folder that a flag or a setting gives, and the reason."""
    if flag is not None:
        return _inside(root, cwd, flag, f"--{key}"), f"--{key} says so."
    if key in settings:
        where = f"{_TABLE} {key} in pyproject.toml"
        return _inside(root, root, settings[key], where), f"{where} says so."
    return None


def _inside(root: Path, base: Path, value: str, origin: str) -> Path:
    if not value or "\0" in value:
        raise MplayerError(f"{origin} must name a folder. Received: {value!r}.")
    # By name alone: a folder that the user has made a link leads where they want.
    path = Path(os.path.normpath(base / value))
    if not path.is_relative_to(root):
        raise MplayerError(
            f"{origin} '{value}' lies outside the project '{root}'. Give a folder"
            " inside it."
        )
    if {".git", ".mplayer"} & {*path.relative_to(root).parts}:
        raise MplayerError(
            f"{origin} '{value}' is where git or mplayer keep their own files. Give"
            " another folder."
        )
    return path


def _find(root: Path, cwd: Path) -> tuple[Path, str] | None:
    """The layers package of the project, there or to be made, and the reason."""
    packages = _packages(root)
    packages = [path for path in packages if cwd.is_relative_to(path)] or packages
    layers = [path / "layers" for path in packages if _is_package(path / "layers")]
    candidates = layers or packages
    if not candidates:
        return None
    if len(candidates) > 1:
        names = ", ".join(f"'{_relative(root, path)}'" for path in candidates)
        raise MplayerError(
            f"Several packages could hold the layer: {names}. Choose a folder with"
            " --layer-dir."
        )
    name = _relative(root, candidates[0])
    if layers:
        return layers[0], f"'{name}' is the layers package of this project."
    return packages[0] / "layers", f"'{name}' is the package of this project."


def _packages(root: Path) -> list[Path]:
    """The packages one level under the root and, in a src layout, under src/."""
    src = root / "src"
    bases = [root] if _is_package(src) or not src.is_dir() else [root, src]
    return sorted(
        folder
        for base in bases
        for folder in base.iterdir()
        if folder.name.isidentifier()
        and folder.name not in _NO_PACKAGES
        and _is_package(folder)
    )


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _new_packages(folder: Path) -> tuple[Path, ...]:
    """The folders down to `folder` that must be made, where a package holds them."""
    missing: list[Path] = []
    while not folder.exists():
        missing.insert(0, folder)
        folder = folder.parent
    return tuple(missing) if _is_package(folder) else ()


def _import_base(folder: Path, created: tuple[Path, ...]) -> Path:
    """What must be on `sys.path` to import from `folder`."""
    while _is_package(folder) or folder in created:
        folder = folder.parent
    return folder


def _mirrored(root: Path, layers: Path, created: tuple[Path, ...]) -> Path:
    """The folder under tests/ with the layers' own path, or that below the package."""
    path = layers.relative_to(_import_base(layers, created))
    whole = root / "tests" / path
    return whole if whole.is_dir() else root.joinpath("tests", *path.parts[1:])


def _python_path(root: Path, pyproject: dict[str, object]) -> set[Path]:
    """What pytest puts on `sys.path`, as pyproject.toml says."""
    value = _look_up(pyproject, "tool", "pytest", "ini_options", "pythonpath")
    paths = value.split() if isinstance(value, str) else value
    if not isinstance(paths, list):
        return set()
    return {Path(os.path.normpath(root / str(path))) for path in paths}


def _dotted(path: Path) -> str:
    import keyword

    for part in path.parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            raise MplayerError(
                f"A test cannot import from '{path.as_posix()}', since '{part}' is no"
                " name of a Python package. Choose another folder with --layer-dir."
            )
    return ".".join(path.parts)


def _relative(root: Path, path: Path) -> PurePosixPath:
    return PurePosixPath(path.relative_to(root).as_posix())
