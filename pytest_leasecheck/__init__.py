"""Failure injection for run leases, as a pytest plugin."""

#: For type checkers; importing `typing` would cost more than everything else here.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from .testkit.worker import apoint, point

__version__ = "0.1.0"

__all__ = ["apoint", "point"]


def __getattr__(name: str) -> object:
    """`point` and `apoint`, for a consumer's own code; nothing is imported until they are asked."""
    from importlib import import_module

    if name in __all__:
        return getattr(import_module(".testkit.worker", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
