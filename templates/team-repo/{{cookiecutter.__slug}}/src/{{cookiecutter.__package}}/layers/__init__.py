"""The layers of this package."""

from .{{ cookiecutter.__module }} import {{ cookiecutter.name }}

__all__ = [
    "{{ cookiecutter.name }}",
]
