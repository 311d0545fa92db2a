"""What the plugin costs a pytest that doesn't ask for it: processor time of a whole run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def seconds(folder: Path, *, absent: bool) -> float:
    """One run over a folder with one small test, with the plugin or without."""
    test = folder / "test_one.py"
    if not test.exists():
        test.write_text("def test_one():\n    pass\n", encoding="utf-8")
    without = ["-p", "no:leasecheck"] if absent else []
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *without, str(test)],
        stdout=subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
    )
    _pid, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime
