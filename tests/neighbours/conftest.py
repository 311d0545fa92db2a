"""The consumer's project is run by `check.py`, in a copy; it is no test of ours."""

collect_ignore = ["project"]
