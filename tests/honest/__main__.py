"""`python -m tests.honest`: play all honest programs and their twins, and write their page."""

import tempfile
from pathlib import Path

from .page import PAGE, write


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
