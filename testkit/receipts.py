"""Whose result landed: receipts tell two executions of one process apart.

`worker.effect` answers with a receipt that is unique to the execution, and a subject stores it as
the step's result. The first commit that has a receipt in what it changed is its landing; a landing
in a later tenure than the one it was issued in is a stale write, whichever process made it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final

from .footprints import Ask
from .history import Change, Value

_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{8,65536}={0,2}")


class Receipts:
    """Receipts that were issued and have not landed yet, by their text."""

    def __init__(self) -> None:
        self._open: dict[str, Ask] = {}
        #: Landed receipts, and the commit that they landed in.
        self.landed: dict[str, int] = {}

    def issue(self, ask: Ask) -> None:
        """A worker is about to get this receipt."""
        self._open[ask.event.receipt] = ask

    def land(self, changes: Sequence[Change], *, n: int) -> list[Ask]:
        """The requests whose receipts these changes store for the first time."""
        if not self._open:
            return []
        found: list[Ask] = []
        for change in changes:
            if change.new is None:
                continue
            old = change.old
            for column, value in change.new.items():
                if isinstance(value, (str, bytes)) and (old is None or old.get(column) != value):
                    found += self._in(value)
        for ask in found:
            if self._open.pop(ask.event.receipt, None):
                self.landed[ask.event.receipt] = n
        return found

    def _in(self, value: Value) -> list[Ask]:
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
        if len(data) < 8:
            return []
        found = [ask for text, ask in self._open.items() if text.encode() in data]
        if not found and _BASE64.fullmatch(data):
            try:
                plain = base64.b64decode(data, altchars=b"-_" if b"-" in data else None)
            except (ValueError, binascii.Error):
                return []
            found = [ask for text, ask in self._open.items() if text.encode() in plain]
        return found
