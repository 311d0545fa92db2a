"""Failure injection for run leases, as a pytest plugin."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .testkit.worker import apoint, point

__version__ = "0.1.0"

__all__ = ["apoint", "point"]


def __getattr__(name: str) -> object:
    """`point` and `apoint`, for a consumer's own code; nothing is imported until they are asked."""
    if name in __all__:
        return getattr(import_module(".testkit.worker", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
