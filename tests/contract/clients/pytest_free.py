"""Substitutes for pytest: the environment of the clients does not have it."""


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")
