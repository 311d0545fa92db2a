"""Inside a worker: `time` and `datetime` follow the stage, for a subject whose clock is `patched`.

Fault it serves: a lease that expires between two lines, without waiting for it. Names that a module
bound early are found and replaced too. What it does not model: `time.perf_counter`,
`time.process_time`, `time.clock_gettime`, C libraries that ask the kernel, and clocks kept in
default arguments.
"""

from __future__ import annotations

import copyreg
import datetime as datetimes
import time
from collections.abc import Callable
from typing import Any, Final

from . import names
from .channel import Channel, thread_name
from .clock import ClockPage


def patch_time(*, now_ns: Callable[[], int], monotonic_ns: Callable[[], int]) -> None:
    """From now on this process reads the stage's time. `now_ns` is since the epoch."""
    real_datetime, real_date = datetimes.datetime, datetimes.date
    virtual = _datetime_class(real_datetime, now_ns)
    replaced: dict[Any, Any] = {
        time.time: lambda: now_ns() / 1e9,
        time.time_ns: now_ns,
        time.monotonic: lambda: monotonic_ns() / 1e9,
        time.monotonic_ns: monotonic_ns,
        real_datetime: virtual,
        real_date: _date_class(real_date, now_ns),
        **_calendar(now_ns),
    }
    names.replace(replaced.items(), but=("threading", "_strptime", "_pydatetime"))
    # A pickle of an instance names its class, which must be the one that the name leads to.
    for real in (real_datetime, real_date):
        copyreg.pickle(real, _reducer(replaced[real]))


def _reducer(virtual: Any) -> Callable[[Any], Any]:
    return lambda moment: (virtual, moment.__reduce_ex__(2)[1])


def _calendar(now_ns: Callable[[], int]) -> dict[Any, Any]:
    """The functions of `time` that mean now when they get no moment."""
    localtime, gmtime, ctime, strftime = time.localtime, time.gmtime, time.ctime, time.strftime

    def moment(seconds: float | None) -> float:
        return now_ns() / 1e9 if seconds is None else seconds

    return {
        localtime: lambda secs=None: localtime(moment(secs)),
        gmtime: lambda secs=None: gmtime(moment(secs)),
        ctime: lambda secs=None: ctime(moment(secs)),
        strftime: lambda form, t=None: strftime(form, localtime(moment(None)) if t is None else t),
    }


def _meta(real: type) -> type:
    class Meta(type):
        """Instances and subclasses of the real class count as ours."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    return Meta


def _datetime_class(real: Any, now_ns: Callable[[], int]) -> Any:
    """`datetime` whose now is the stage's; its instances are ordinary ones."""
    utc = datetimes.UTC

    meta: Any = _meta(real)

    class VirtualDatetime(real, metaclass=meta):  # type: ignore[metaclass, misc]  # run time
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return real.__new__(real if cls is VirtualDatetime else cls, *args, **kwargs)

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(now_ns() / 1e9, tz)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(now_ns() / 1e9, utc).replace(tzinfo=None)

    return _named_like(VirtualDatetime, real)


def _date_class(real: Any, now_ns: Callable[[], int]) -> Any:
    meta: Any = _meta(real)

    class VirtualDate(real, metaclass=meta):  # type: ignore[metaclass, misc]  # run time
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return real.__new__(real if cls is VirtualDate else cls, *args, **kwargs)

        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(now_ns() / 1e9)

    return _named_like(VirtualDate, real)


def _named_like(virtual: Any, real: Any) -> Any:
    virtual.__name__, virtual.__qualname__ = real.__name__, real.__qualname__
    virtual.__module__, virtual.__doc__ = real.__module__, real.__doc__
    return virtual


class SkewedEyes:
    """What this worker's `time.time` and SQLite's `'now'` see, with its skew.

    A reading is an event, once per thread and time seen: logging reads the clock at every line.
    """

    def __init__(self, page: ClockPage, channel: Channel) -> None:
        self._page: Final = page
        self.note: Final = _reads_to(channel.record, name_of=thread_name)
        self.slot = 0

    def now_ns(self) -> int:
        """Nanoseconds since the epoch. The reading is an event."""
        value_ns = self.peek_ns()
        self.note(value_ns)
        return value_ns

    def peek_ns(self) -> int:
        """The same without an event."""
        return self._page.now_ns() + self._page.skew_ns(self.slot)


def _reads_to(record: Callable[..., None], *, name_of: Callable[[], str]) -> Callable[[int], None]:
    """Record a reading of the clock, unless the thread saw the same time when it last looked."""
    last: dict[str, int] = {}

    def note(value_ns: int) -> None:
        name = name_of()
        if last.get(name) != value_ns:
            last[name] = value_ns
            record("clock-read", name, value_ns)

    return note
