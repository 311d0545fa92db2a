"""Points in threads, coroutines and by dotted names; each a job."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from called_things import elsewhere
from subjects_plain import Plain, own_point, update

from pytest_leasecheck import apoint
from pytest_leasecheck.testkit.worker import Worker


def function(note: str) -> str:
    return note + "!"


async def coroutine(note: str) -> str:
    await asyncio.sleep(0)
    return note + "?"


class Thing:
    def method(self, note: str) -> str:
        return note + "."

    @staticmethod
    def static(note: str) -> str:
        return note + ","

    @classmethod
    def made(cls, note: str) -> str:
        return note + cls.__name__


class Points(Plain):
    calls = (
        "called_things:elsewhere",
        "subjects_points:function",
        "subjects_points:coroutine",
        "subjects_points:Thing.method",
        "subjects_points:Thing.static",
        "subjects_points:Thing.made",
    )
    heartbeats = ("subjects_points:Points.renew",)

    def renew(self, worker: Worker) -> None:
        update(worker.db, "a", "renewed")

    def called(self, worker: Worker) -> Any:
        return [
            function("f"), Thing().method("m"), Thing.static("s"), Thing.made("c"),
            asyncio.run(coroutine("a")),
        ]  # fmt: skip

    def called_by_another_module(self, worker: Worker) -> Any:
        return elsewhere("early")

    def charging(self, worker: Worker) -> Any:
        return [worker.effect("charge"), worker.effect("charge"), worker.effect("mail")]

    def own(self, worker: Worker) -> None:
        own_point("deep")
        worker.point("shallow")

    def in_thread(self, worker: Worker) -> None:
        def second() -> None:
            worker.point("second")
            update(worker.db, "b", "second")

        thread = threading.Thread(target=second, name="second")
        thread.start()
        worker.point("first")
        update(worker.db, "a", "first")
        thread.join()

    def beating(self, worker: Worker) -> None:
        done = threading.Event()

        def beat() -> None:
            while not worker.clock.wait(done, 3_000):
                self.renew(worker)

        thread = threading.Thread(target=beat, name="beat", daemon=True)
        thread.start()
        worker.effect("charge")
        done.set()
        thread.join()

    def coroutines(self, worker: Worker) -> Any:
        return asyncio.run(self.gathered(worker))

    async def gathered(self, worker: Worker) -> Any:
        seen: list[str] = []

        async def held() -> None:
            await apoint("held")
            seen.append("held")

        async def ticking() -> None:
            for number in range(3):
                await asyncio.sleep(1)
                update(worker.db, "b", number)
            seen.append("ticked")

        await asyncio.gather(held(), ticking())
        return seen

    def many_held(self, worker: Worker) -> Any:
        async def one(number: int) -> int:
            await worker.apoint("held")
            return number

        async def everyone() -> Any:
            pool = await asyncio.gather(
                *(one(number) for number in range(40)), asyncio.to_thread(function, "pool")
            )
            return len(pool)

        return asyncio.run(everyone())

    def awaited_effect(self, worker: Worker) -> Any:
        async def run() -> Any:
            ticks = asyncio.create_task(self.tick(worker))
            receipt = await worker.aeffect("charge")
            ticks.cancel()
            return receipt

        return asyncio.run(run())

    async def tick(self, worker: Worker) -> None:
        while True:
            await asyncio.sleep(1)
            update(worker.db, "b", "tick")
