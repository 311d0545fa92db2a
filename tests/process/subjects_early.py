"""A module that bound a name early."""

from subjects_points import function as function

__all__ = ["function"]
