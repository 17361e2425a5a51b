"""The layers of this package."""

from .my_layer import MyLayer

# One name a line: git keeps the lines of both branches that add one.
__all__ = [
    "MyLayer",
]
