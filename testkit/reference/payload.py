"""What may be stored: ids that survive unharmed, and payloads that JSON gives back equal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from .errors import InvalidPayload, InvalidRunId

#: Longer ids are surely payloads in the wrong place.
MAX_ID_CHARS: Final = 1024
#: A limit on everything: 64 MiB of JSON text in one column.
MAX_PAYLOAD_CHARS: Final = 64 * 1024 * 1024


def checked_run_id(run_id: object) -> str:
    """The id, if SQLite gives it back as it is. Raises InvalidRunId.

    Quotes, newlines and any script are fine. A NUL would cut the text short in other tools,
    and a lone surrogate is no text at all.
    """
    if not isinstance(run_id, str):
        raise InvalidRunId(run_id, f"it is a {type(run_id).__name__}, not a str")
    if not run_id:
        raise InvalidRunId(run_id, "it is empty")
    if len(run_id) > MAX_ID_CHARS:
        raise InvalidRunId(run_id, f"it has {len(run_id)} characters, {MAX_ID_CHARS} at most")
    if "\x00" in run_id:
        raise InvalidRunId(run_id, f"it has a NUL character at {run_id.index(chr(0))}")
    lone = next((i for i, char in enumerate(run_id) if "\ud800" <= char <= "\udfff"), None)
    if lone is not None:
        raise InvalidRunId(run_id, f"it has a lone surrogate at {lone}, which is not text")
    return run_id


def checked_name(name: str) -> str:
    """An owner's or a tool's name, under the same rules as an id."""
    return checked_run_id(name)


def encode(value: object) -> str:
    """JSON text in ASCII, so that NULs and lone surrogates survive. Raises InvalidPayload."""
    try:
        _check_keys(value)
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise InvalidPayload("it is nested too deep, or contains itself") from None
    except (TypeError, ValueError) as error:
        raise InvalidPayload(str(error)) from error
    if len(text) > MAX_PAYLOAD_CHARS:
        raise InvalidPayload(f"{len(text)} characters of JSON, {MAX_PAYLOAD_CHARS} at most")
    return text


def decode(text: str | None) -> object:
    """The value that was encoded; None for no text."""
    return None if text is None else json.loads(text)


def _check_keys(value: object) -> None:
    """JSON would turn other keys into strings without a word."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidPayload(f"the key {key!r} is a {type(key).__name__}, not a str")
            _check_keys(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for inner in value:
            _check_keys(inner)
