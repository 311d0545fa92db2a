"""The kit: real worker processes, faults at exact points, and a verdict from evidence.

Knows nothing of pytest. Its one import name is ``pytest_leasecheck.testkit``: the folder stands at
the top of the repository for its readers, and a second copy of the same classes under the name
``testkit`` would fail every ``isinstance`` in silence.
"""

if __name__ != "pytest_leasecheck.testkit":
    raise ImportError(
        f"this package was imported as {__name__!r}, and has one name only: "
        "import 'pytest_leasecheck.testkit' instead",
        name=__name__,
        path=__file__,
    )
