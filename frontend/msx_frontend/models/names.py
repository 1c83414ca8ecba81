"""Names and versions of models that may be registered."""

from msx_core.names import name_problem, short_name, version_problem
from msx_frontend.management_errors import InvalidModel


def check_names(name: str, version: str) -> None:
    """Raises InvalidModel."""
    if problem := name_problem(name):
        raise InvalidModel(f"Model name {short_name(name)} cannot be served: it {problem}.")
    if problem := version_problem(version):
        raise InvalidModel(f"Version {short_name(version)} of model {name} cannot be served: it {problem}.")
