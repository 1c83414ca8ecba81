"""Commands that run a module of this server's in an interpreter."""

_PATH = "import sys; sys.path[:1] = filter(None, sys.path[:1]); "
_RUN = "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"


def module_command(python: str, module: str, *, first: str = "") -> list[str]:
    """Make `PYTHON -m MODULE`, but for the working folder: by `-m`, a user's signal.py there would be imported in the
    place of Python's own module. (Python has an option for that since 3.11.)

    `first`: a statement before anything of the module is imported; its arguments begin at `sys.argv[2]` then.
    """
    return [python, "-c", f"{_PATH}{first and first + '; '}{_RUN}", module]


def import_command(python: str, module: str) -> list[str]:
    """Only import the module, from where `module_command` would."""
    return [python, "-c", f"{_PATH}import {module}"]
