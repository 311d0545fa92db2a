"""The reusable scenarios, a few to a file: each tells its story, its script, and what must hold.

Its one import name is ``pytest_leasecheck.scenarios``, for the reason given in the kit's package.
"""

if __name__ != "pytest_leasecheck.scenarios":
    raise ImportError(
        f"this package was imported as {__name__!r}, and has one name only: "
        "import 'pytest_leasecheck.scenarios' instead",
        name=__name__,
        path=__file__,
    )
