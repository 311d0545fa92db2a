"""The queue through other people's database libraries; each a job."""

from __future__ import annotations

import asyncio
from typing import Any

from subjects_plain import Plain

from pytest_leasecheck.testkit.worker import Worker


class Libraries(Plain):
    def sqlalchemy(self, worker: Worker) -> str:
        import sqlalchemy as sa

        engine = sa.create_engine(f"sqlite:///{worker.db}")
        with engine.begin() as connection:
            for run_id in ("a", "b"):
                connection.execute(
                    sa.text("UPDATE jobs SET note = 'sqlalchemy' WHERE id = :id"), {"id": run_id}
                )
        return "done"

    def aiosqlite(self, worker: Worker) -> str:
        return asyncio.run(self._aiosqlite(worker))

    async def _aiosqlite(self, worker: Worker) -> Any:
        import aiosqlite

        async with aiosqlite.connect(worker.db) as connection:
            for run_id in ("a", "b"):
                await connection.execute(
                    "UPDATE jobs SET note = 'aiosqlite' WHERE id = ?", (run_id,)
                )
            await connection.commit()
        return "done"
