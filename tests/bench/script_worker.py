"""A worker as people write it for a test of this kind: a script with an argument for each part."""

import sys

from tests.bench import tinylease


def _hold(pay: object) -> None:
    print("held", flush=True)
    sys.stdin.readline()
    pay()  # type: ignore[operator]


def main() -> None:
    """`prepare DB`, `check DB`, `work DB OWNER`, `hold DB OWNER`."""
    part, db, *owner = sys.argv[1:]
    if part == "prepare":
        tinylease.prepare(db)
    elif part == "check":
        print(tinylease.state_of(db))
    else:
        leases = tinylease.Leases(db, owner=owner[0], lease_ttl_s=0.3)
        print(tinylease.work(leases, **({"paying": _hold} if part == "hold" else {})))
        leases.close()


main()
