"""The layers of this package."""

from .{{ cookiecutter.__module }} import {{ cookiecutter.name }}

# One name a line: git keeps the lines of both branches that add one.
__all__ = [
    "{{ cookiecutter.name }}",
]
