"""Workers whose effects the provider may delay: each writes before and after its request."""

from __future__ import annotations

from subjects_plain import Plain, update

from pytest_leasecheck.testkit.worker import Worker


class Delayed(Plain):
    def work(self, worker: Worker) -> str:
        update(worker.db, "a", f"{worker.name} asks")
        receipt = worker.effect("charge")
        for number in range(3):
            update(worker.db, "a", f"{worker.name} {number}")
        return receipt
