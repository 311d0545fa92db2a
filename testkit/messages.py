"""What a worker may say to its lane. Anything else is taken as the worker's death, not the lane's.

Faults it is made for: code under test that writes into a descriptor it doesn't own, or closes it
and gets its number again. What it does not cover: bytes made to crash `marshal` itself.
"""

from __future__ import annotations

from typing import Any, Final

from .rows import as_token

_NONE: Final = type(None)
#: The events that travel with a message: the types of each row's fields, its kind first.
_ROWS: Final = frozenset(
    {
        ("passed", str, str, int, str, bool),
        ("statement", str, int, int, str, str, str, int),
        ("statement", str, int, int, str, str, str, _NONE),
        ("rolled-back", str, int, int),
        ("clock-read", str, int),
        ("effect-answered", int, str),
        ("blind", str),
        ("noted", str),
    }
)
_TYPES: Final = {
    name: frozenset((str, *kinds) for one, *kinds in _ROWS if one == name)
    for name, *_kinds in _ROWS
}
_PAYLOADS: Final = {
    "hold": (str, int, str),
    "returned": (str, str, str, str),
    "commit": (str, int, int, bool),
    "lookup": (str, str, str),
}
_PLAIN: Final = {
    "wait": int,
    "turn": int,
    "no-commit": int,
    "exclusive": int,
    "line": str,
    "rest": _NONE,
}
_EFFECT: Final = ((str,), (str,), (str, int, _NONE), (int, _NONE), (str, _NONE), (str,), (bool,))


def checked(message: Any) -> Any:
    """The message itself. Raises ValueError when it is none."""
    kind, thread, rows, settlement, payload = message  # a ValueError or TypeError of its own
    if type(kind) is not str or type(thread) is not int or type(rows) is not list:
        raise ValueError("its head is wrong")
    for row in rows:
        kinds = tuple(map(type, row))
        if kinds not in _TYPES.get(row[0], ()):
            raise ValueError(f"no event of a worker's: {row!r:.100}")
    if settlement is not None and not _is_settlement(settlement):
        raise ValueError("its settlement is wrong")
    if not _is_payload(kind, payload):
        raise ValueError(f"no payload of {kind!r:.40}: {payload!r:.100}")
    return message


def checked_name(name: object, *, what: str) -> str:
    """A point's or an effect's name as it travels. Raises TypeError for what is no text."""
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} is text, not {type(name).__name__}: {name!r:.80}")
    return str.__str__(name)


def effect_names(
    run_id: object, token: object, key: object
) -> tuple[str | None, int | None, str | None]:
    """Run, token and key of an effect as they travel, whatever a consumer's columns hold.

    Ids and keys are text, as rows are read (several columns joined by '/'); a token is a whole
    number, however it is stored. Raises TypeError for a token that has no order.
    """
    if isinstance(run_id, tuple | list):
        run_id = "/".join(str(part) for part in run_id)
    number = as_token(token)
    if number is None and token is not None:
        raise TypeError(
            f"token={token!r:.80} is no whole number, which a fence could compare; leave token out"
            " if yours has no order"
        )
    return (
        None if run_id is None else str(run_id),
        number,
        None if key is None else str(key),
    )


def _is_settlement(settlement: Any) -> bool:
    settled, unseen, waits = settlement
    return (
        type(settled) is bool
        and type(unseen) is int
        and all(tuple(map(type, wait)) == (int, str, str, int, int) for wait in waits)
    )


def _is_payload(kind: str, payload: Any) -> bool:
    if kind in _PLAIN:
        return type(payload) is _PLAIN[kind]
    if kind == "effect":
        return len(payload) == len(_EFFECT) and all(
            type(value) in types for value, types in zip(payload, _EFFECT, strict=True)
        )
    return kind in _PAYLOADS and tuple(map(type, payload)) == _PAYLOADS[kind]
