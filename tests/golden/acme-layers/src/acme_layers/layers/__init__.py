"""The layers of this package."""

from .my_layer import MyLayer

__all__ = [
    "MyLayer",
]
