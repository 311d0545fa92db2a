"""The side-effect boundary that is fenced completely: effect and lease in one transaction.

A worker's own check leaves a race between the check and the write; here the write itself
refuses a stale token. (First seed: "the side-effect store must enforce the token too".) It
serves effects that live in the store's own database. The world outside has a ``Provider``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final

from . import guards
from .clock import Clock
from .errors import RuntimeRefusal, StaleToken
from .lease import Claim
from .payload import checked_run_id, decode, encode
from .store import Store
from .tenure import fence
from .tools import Answer, Call, Found, NotFound

#: An effect on the store's own database. It must leave the transaction to the caller.
LocalEffect = Callable[[sqlite3.Connection], object]


class EffectStore:
    """Accepts effects from the present owner of a run, each idempotency key once.

    ``refused`` counts what this object has refused since it was made.
    """

    def __init__(self, store: Store, *, clock: Clock | None = None) -> None:
        self.store: Final = store
        self.clock: Final = store.clock if clock is None else clock
        self.refused = 0

    def apply(
        self,
        call: Call,
        effect: LocalEffect | None = None,
        *,
        result: object = None,
        key: str | None = None,
    ) -> object:
        """Apply an effect under a call's token, and give its result.

        In one transaction: the lease is checked, ``effect`` is run with the connection, and
        a row with its result (or ``result``, without an ``effect``) is kept. A key that was
        applied before gives the kept result, but only to whom the lease belongs: a stale
        token is refused first. Raises StaleToken, and then nothing was applied.
        """
        claim = Claim(call.run_id, call.owner, call.token, 0)
        kept = checked_run_id(call.idempotency_key if key is None else key)
        with self.store.transaction() as connection:
            self._check(connection, claim)
            row = find_effect(connection, kept)
            if row is not None:
                return decode(row[0])
            value = result if effect is None else effect(connection)
            connection.execute(
                "INSERT INTO effects (idempotency_key, run_id, idx, name, owner, fencing_token,"
                " result) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (kept, call.run_id, call.idx, call.name, call.owner, call.token, encode(value)),
            )
        return value

    def lookup(self, key: str) -> Answer:
        """Whether an effect of this key was applied: the store is its own provider."""
        with self.store.db() as connection:
            row = find_effect(connection, key)
        return NotFound() if row is None else Found(decode(row[0]))

    def _check(self, connection: sqlite3.Connection, claim: Claim) -> None:
        try:
            fence(
                connection,
                claim,
                guards.EFFECT_STATUS,
                guards.EFFECT_HOLDER,
                guards.EFFECT_UNEXPIRED,
                now_ms=self.clock.now_ms(),
            )
        except RuntimeRefusal as error:
            self.refused += 1
            raise StaleToken(claim.run_id, claim.owner, claim.token, str(error)) from error


def find_effect(connection: sqlite3.Connection, key: str) -> tuple[str] | None:
    """The kept result of an applied effect, as JSON; None when the key is new."""
    row: tuple[str] | None = connection.execute(
        "SELECT result FROM effects WHERE idempotency_key = ?", (key,)
    ).fetchone()
    return row
