"""A test in a folder of the name under which the suite is mounted."""


def test_theirs():
    assert __name__.endswith("test_theirs")
