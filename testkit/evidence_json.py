"""Evidence as JSON: a documented, versioned form that other programs may rely on.

The fields are the dataclasses' own, in their order; docs/reference/evidence.md describes each.
A field may be added in one version; one that goes, or means something else, is a new version.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Final

from .evidence import Evidence

#: The version that is written.
VERSION: Final = 1
_VERSION_KEY: Final = "leasecheck-evidence"
#: Longer texts are cut; the history has all of them.
_LONGEST: Final = 4_096


def evidence_to_json(evidence: Evidence) -> dict[str, object]:
    """The evidence as dicts, lists, texts, numbers, booleans and None."""
    plain = _plain(evidence)
    assert isinstance(plain, dict)
    data: dict[str, object] = {_VERSION_KEY: VERSION}
    return data | plain


def dumps(evidence: Evidence) -> str:
    """The evidence as the text of a JSON file, ASCII, a field a line."""
    data = evidence_to_json(evidence)
    return json.dumps(data, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, int):
        return int(value) if -(1 << 128) < value < 1 << 128 else {"$int": f"{int(value):x}"}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(bytes(value)[:_LONGEST]).decode("ascii")}
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    raise TypeError(f"evidence can't hold {type(value).__name__}")


def _text(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} characters more)"
