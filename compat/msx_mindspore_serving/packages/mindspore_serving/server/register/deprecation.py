"""Warnings about old names, in MindSpore Serving's words."""

import logging

_REGISTER = "mindspore_serving.server.register"

log = logging.getLogger("msx.servable")


def warn_deprecated(name: str, instead: str, since: str = "1.5.0") -> None:
    """Log that `instead`, of the same package, has taken the place of `name`."""
    log.warning(
        "'%s' is deprecated from version %s and will be removed in a future version, use '%s.%s' instead.",
        name,
        since,
        _REGISTER,
        instead,
    )


def warn_options() -> None:
    """Log that `declare_model` has a successor to its parameter `options`."""
    log.warning(
        "'options' will be deprecated in the future, we recommend using 'context', if these two parameters are both "
        "set, options will be ignored"
    )
