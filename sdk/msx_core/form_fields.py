"""Requests that came as the fields of a form, to handlers that read a body."""

import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from msx_core.bodies import media_type
from msx_core.errors import InvalidInput

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
FORM_ADVICE = (
    f"A body that comes as {FORM}, which curl and urllib state unless they are told, is read as a form's fields: state "
    "what it is, for curl by -H 'content-type: application/json' (text/plain, application/octet-stream for a file)."
)
_NAME = re.compile(r"[^\x00-\x20\x7f\"{}<>\ufffd]+")
"""A field's name, as a form has it. JSON, sentences, files and HTML, which are cut at "&" and "=", begin otherwise."""
_SHOWN = 5


class NoBody(InvalidInput, KeyError):
    """A KeyError, too: handlers that try `row["body"]` first go on as they do under TorchServe."""

    __str__ = Exception.__str__


class FormFields(dict[str, Any]):
    """The fields of a request that has no field `body`. A copy of it, and what is pickled of it, is a plain dict.

    `["body"]` raises NoBody. So does `get("body")` where what came is no form: the handler would answer without the
    text that was sent.
    """

    def __init__(self, fields: Mapping[str, Any], content_type: Callable[[], str]) -> None:
        super().__init__(fields)
        self._content_type = content_type

    def __missing__(self, key: str) -> Any:
        raise self._no_body() if key == "body" else KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        if key == "body" and self.is_no_form:
            raise self._no_body()
        return super().get(key, default)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    @property
    def is_no_form(self) -> bool:
        """Whether a body of another kind was stated to be a form."""
        return bool(self) and media_type(self._content_type()) == FORM and not is_form(self)

    def _no_body(self) -> NoBody:
        if media_type(self._content_type()) == FORM:
            return NoBody(f"This model reads a body, and the request came without one. {FORM_ADVICE}")
        names = ", ".join(repr(name[:40]) for name in islice(self, _SHOWN))
        return NoBody(f"This model reads a body, and the request has fields, none of that name: {names}.")


def is_form(fields: Mapping[str, Any]) -> bool:
    """Whether fields that a body was divided into have names and values as those of a form do."""
    return _NAME.fullmatch(next(iter(fields), "")) is not None and any(fields.values())
