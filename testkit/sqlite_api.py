"""The part of SQLite's C interface that Python doesn't offer, by ctypes.

Works where `_sqlite3` uses a shared libsqlite3 whose symbols are visible (Debian, most builds);
`load()` returns None elsewhere, and the caller says which guarantees fall. No compiler, no
LD_PRELOAD, nothing of the subject is edited. Offsets and traps were checked on CPython 3.11-3.13.
"""

from __future__ import annotations

import ctypes
import sqlite3
from typing import Any, Final

TRACE_STMT: Final = 1
TRACE_PROFILE: Final = 2
#: The counter of a statement that says how often it was run.
STATUS_RUN: Final = 6
_NO_CKPT_ON_CLOSE: Final = 1006

TraceCallback: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
CommitHook: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
RollbackHook: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_SleepHook: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
_TimeHook: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double))
_Time64Hook: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))

_VFS_METHODS: Final = (
    "xOpen", "xDelete", "xAccess", "xFullPathname", "xDlOpen", "xDlError", "xDlSym", "xDlClose",
    "xRandomness", "xSleep", "xCurrentTime", "xGetLastError", "xCurrentTimeInt64",
)  # fmt: skip


class Vfs(ctypes.Structure):
    """`struct sqlite3_vfs`, as far as we touch it (version 2)."""

    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _VFS_METHODS),
    ]


#: name, result type, argument types
_FUNCTIONS: Final = (
    ("sqlite3_trace_v2", ctypes.c_int,
     (ctypes.c_void_p, ctypes.c_uint, TraceCallback, ctypes.c_void_p)),
    ("sqlite3_commit_hook", ctypes.c_void_p, (ctypes.c_void_p, CommitHook, ctypes.c_void_p)),
    ("sqlite3_rollback_hook", ctypes.c_void_p, (ctypes.c_void_p, RollbackHook, ctypes.c_void_p)),
    ("sqlite3_sql", ctypes.c_void_p, (ctypes.c_void_p,)),
    ("sqlite3_expanded_sql", ctypes.c_void_p, (ctypes.c_void_p,)),
    ("sqlite3_free", None, (ctypes.c_void_p,)),
    ("sqlite3_stmt_readonly", ctypes.c_int, (ctypes.c_void_p,)),
    ("sqlite3_stmt_busy", ctypes.c_int, (ctypes.c_void_p,)),
    ("sqlite3_data_count", ctypes.c_int, (ctypes.c_void_p,)),
    ("sqlite3_stmt_status", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int, ctypes.c_int)),
    ("sqlite3_expired", ctypes.c_int, (ctypes.c_void_p,)),
    ("sqlite3_next_stmt", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    ("sqlite3_get_autocommit", ctypes.c_int, (ctypes.c_void_p,)),
    ("sqlite3_changes", ctypes.c_int, (ctypes.c_void_p,)),
    ("sqlite3_db_filename", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_char_p)),
    ("sqlite3_db_config", ctypes.c_int,
     (ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)),
    ("sqlite3_vfs_find", ctypes.POINTER(Vfs), (ctypes.c_char_p,)),
)  # fmt: skip


def load() -> Any | None:
    """The libsqlite3 that this interpreter's `sqlite3` uses, or None when its symbols are hidden.

    Through the extension's own dependency, so that it is the very same library.
    """
    import _sqlite3

    try:
        library = ctypes.CDLL(_sqlite3.__file__)
        for name, result, arguments in _FUNCTIONS:
            function = getattr(library, name)
            function.restype = result
            function.argtypes = list(arguments)
    except (AttributeError, OSError):
        return None
    return library


def database_pointer(connection: sqlite3.Connection) -> int | None:
    """The `sqlite3*` behind a connection: the first field after the object's head.

    In the audit event `sqlite3.connect/handle` the base `__init__` has not run to its end, so no
    method may be called; reading memory may.
    """
    return ctypes.c_void_p.from_address(id(connection) + object.__basicsize__).value


def close_without_checkpoint(library: Any, connection: sqlite3.Connection) -> None:
    """The connection's close writes nothing back and leaves the WAL, though it be the last."""
    library.sqlite3_db_config(database_pointer(connection), _NO_CKPT_ON_CLOSE, 1, None)


def text_at(pointer: int | None) -> str:
    """The C string there, whatever bytes it holds."""
    return ctypes.string_at(pointer).decode("utf-8", "surrogateescape") if pointer else ""


class _Kept:
    """Keeps what was installed into the default VFS alive for the life of the process."""

    callbacks: Final[list[object]] = []


def install_vfs_clock(library: Any, now_ns: Any) -> None:
    """SQLite's own `'now'` follows `now_ns()`."""

    def int64(_vfs: int, out: Any) -> int:
        out[0] = 210_866_760_000_000 + now_ns() // 1_000_000
        return 0

    def real(_vfs: int, out: Any) -> int:
        out[0] = (210_866_760_000_000 + now_ns() / 1e6) / 86_400_000.0
        return 0

    vfs = library.sqlite3_vfs_find(None).contents
    first, second = _Time64Hook(int64), _TimeHook(real)
    _Kept.callbacks.extend((first, second))
    vfs.xCurrentTimeInt64 = ctypes.cast(first, ctypes.c_void_p).value
    vfs.xCurrentTime = ctypes.cast(second, ctypes.c_void_p).value


def install_vfs_sleep(library: Any, on_sleep: Any) -> None:
    """SQLite's busy sleep becomes `on_sleep(microseconds)`."""

    def sleep(_vfs: int, microseconds: int) -> int:
        on_sleep(microseconds)
        return microseconds

    vfs = library.sqlite3_vfs_find(None).contents
    hook = _SleepHook(sleep)
    _Kept.callbacks.append(hook)
    vfs.xSleep = ctypes.cast(hook, ctypes.c_void_p).value
