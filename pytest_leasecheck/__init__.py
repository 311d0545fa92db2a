"""Failure injection for run leases, as a pytest plugin."""

__version__ = "0.1.0"

__all__ = ["apoint", "point"]


def __getattr__(name: str) -> object:
    """`point` and `apoint`, for a consumer's own code; nothing is imported until they are asked."""
    if name in __all__:
        from .testkit import worker

        return getattr(worker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
