"""In the lane, once: what the subject's import does, and the bytes of a fresh database.

Both are found out in a child: a lane must neither open SQLite nor have a second thread.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Final

from .blame import blaming
from .child import in_child
from .errors import SubjectError, SubjectFailed
from .subject import Subject
from .subject_source import SubjectSource
from .wrapping import fixed_names, missing_names

_ABOUT_PREPARE: Final = (
    "It is called in a process of its own with the path of a file that is not there yet; to see it"
    " alone: YourSubject().prepare(pathlib.Path('some.db'))."
)


def look_at_import(source: SubjectSource, *, deadline_s: float) -> str:
    """Import a subject and what it names in a child: `clean`, or how that opens SQLite or threads.

    Raises `SubjectRaised`, `SubjectError`, `SubjectFailed`.
    """

    def look() -> str:
        """In the child: import, and see what that opened and started."""
        opened: list[str] = []
        sys.addaudithook(
            lambda event, args: opened.append(str(args[0]))
            if event == "sqlite3.connect" else None
        )  # fmt: skip
        subject = source.load()
        problems = list(missing_names(subject)) or list(fixed_names(subject))  # imports them, too
        if problems:
            raise SubjectError(f"the declaration of {source}", problems)
        threads = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
        faults = [f"opens SQLite ({', '.join(opened[:3])})"] if opened else []
        faults += [f"starts threads ({', '.join(threads[:3])})"] if threads else []
        return "; ".join(faults) or "clean"

    return in_child(look, what=f"importing {source}", deadline_s=deadline_s)


def make_template(subject: Subject | SubjectSource, path: str, *, deadline_s: float) -> bytes:
    """The bytes of a fresh database at `path`, prepared in a child; no file of it is left.

    Raises `SubjectRaised`, `SubjectFailed`.
    """

    def prepare() -> str:
        """In the child: the subject's schema, all of it in the one file."""
        one = subject if isinstance(subject, Subject) else subject.load()
        with blaming("the subject's prepare()", advice=_ABOUT_PREPARE):
            one.prepare(Path(path))
        gc.collect()
        try:
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
        except sqlite3.Error as error:
            raise SubjectFailed(
                "the subject's prepare() left no SQLite database at the path that it was given:"
                f" {error}"
            ) from None
        return ""

    try:
        in_child(prepare, what="the subject's prepare()", deadline_s=deadline_s)
        with open(path, "rb") as file:
            return file.read()
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                os.unlink(path + suffix)
