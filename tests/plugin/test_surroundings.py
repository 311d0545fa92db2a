"""Where the plugin is run: a read-only checkout, little shared memory, hidden symbols, odd imports.

On the real engine, since it is the surroundings that are tested.
"""

import subprocess
import sys

import pytest

from .test_real_engine import QUEUE

REFERENCE = ("--leasecheck", "--leasecheck-subject=reference", "-pno:cacheprovider")
ONE = "leasecheck/classic::eight_steps"

#: Root writes everywhere, unless these two capabilities are gone.
WITHOUT_PRIVILEGE = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])
"""


@pytest.fixture
def plain(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a queue in it, and nothing in the environment."""
    for name in ("PYTEST_ADDOPTS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(queues=QUEUE)
    return pytester


def test_read_only_checkout_is_nobodys_mistake(plain: pytest.Pytester) -> None:
    program = plain.makepyfile(drop=WITHOUT_PRIVILEGE)
    plain.path.chmod(0o555)
    try:
        result = plain.run(sys.executable, program, *REFERENCE, ONE, "--leasecheck-keep")
    finally:
        plain.path.chmod(0o755)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines("leasecheck: evidence goes to /*, as rootdir can't be written *")
    assert not (plain.path / ".leasecheck").exists()


@pytest.mark.parametrize(("size", "fallen"), [("64m", False), ("1m", True)], ids=["64 MB", "full"])
def test_little_shared_memory(plain: pytest.Pytester, size: str, fallen: bool) -> None:
    mounts = f"mount -t tmpfs -o size={size} none /dev/shm"
    unshare = ["unshare", "--mount", "sh", "-c"]
    try:
        allowed = subprocess.run([*unshare, mounts], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare(1) here")
    if allowed.returncode != 0:
        pytest.skip("nothing may be mounted here")
    command = [sys.executable, "-m", "pytest", *REFERENCE, ONE]
    result = plain.run(*unshare, f'{mounts} && exec "$@"', "sh", *command)
    result.assert_outcomes(passed=1)
    told = [line for line in result.outlines if line.startswith("fallen ")]
    assert [("/dev/shm has no room" in line) for line in told] == [True] * fallen


def test_hidden_symbols_leave_what_is_left_and_say_what_fell(plain: pytest.Pytester) -> None:
    result = plain.runpytest_subprocess(
        *REFERENCE, "--leasecheck-no-hooks", "leasecheck/classic", "leasecheck/takeover"
    )
    outcomes = result.parseoutcomes()
    assert set(outcomes) == {"passed", "skipped"}, result.stdout.str()
    assert outcomes["passed"] >= 3
    result.stdout.fnmatch_lines(
        [
            "not claimed   not shown: SQLite's symbols are hidden, and this scenario looks at *",
            "fallen        libsqlite3's symbols are hidden here: *",
        ]
    )


def test_hidden_symbols_hide_no_fault(plain: pytest.Pytester) -> None:
    result = plain.runpytest_subprocess(
        *("--leasecheck", "--leasecheck-subject=queues:Unfenced", "--leasecheck-no-hooks"),
        "leasecheck/classic::wakes_while_the_new_owner_holds",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines("BROKEN        a stale token never writes *V1 in *")


def test_doctor_says_what_fell(plain: pytest.Pytester) -> None:
    flags = ("--leasecheck-doctor", "--leasecheck-subject=queues:Queue")
    whole = plain.runpytest_subprocess(*flags)
    assert whole.ret == 0
    whole.stdout.fnmatch_lines(["points in SQL  yes", "holds *"])
    hidden = plain.runpytest_subprocess(*flags, "--leasecheck-no-hooks")
    assert hidden.ret == 0
    hidden.stdout.fnmatch_lines(["points in SQL  no: *", "does not hold *symbols are hidden*"])


IMPORTS = {
    "sqlite": "held = sqlite3.connect(':memory:')",
    "thread": "import threading\n"
    "threading.Thread(target=threading.Event().wait, daemon=True).start()",
}


@pytest.mark.parametrize("does", IMPORTS)
def test_subject_whose_import_does_too_much(plain: pytest.Pytester, does: str) -> None:
    plain.makepyfile(busy=f"{QUEUE}\n{IMPORTS[does]}\n")
    subject = "--leasecheck-subject=busy:Queue"
    doctor = plain.runpytest_subprocess("--leasecheck-doctor", subject)
    told = next(line for line in doctor.outlines if line.startswith("its import"))
    assert does in told.lower()
    plain.runpytest_subprocess("--leasecheck", subject, ONE).assert_outcomes(passed=1)
