"""Keras layers that compute correctly under every dtype policy."""

__version__ = "0.1.0"
