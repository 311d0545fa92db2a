"""Lets a lane, which is a fresh interpreter, import the subjects of this folder by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


@contextmanager
def importable() -> Iterator[None]:
    """A process that is started meanwhile gets our path."""
    sys.path.insert(0, str(ROOT))
    try:
        yield
    finally:
        sys.path.remove(str(ROOT))
