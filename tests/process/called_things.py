"""A module whose function another module binds early."""


def elsewhere(note: str) -> str:
    return note + "!"
