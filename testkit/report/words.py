"""Text from a history, fit for HTML, in elements and attributes: harmless, short, escaped."""

from __future__ import annotations

from html import escape

from ..harmless import harmless


def safe(value: object, *, most: int = 1_000) -> str:
    """A value as escaped text."""
    return escape(harmless(value, most=most), quote=True)
