"""Interface of a version's handler, before and after its first worker has loaded it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from msx_core.methods import METHOD, MethodInfo
from msx_core.service_errors import HandlerMethodNotFound, NotOffered
from msx_frontend.models.versions.schema import VersionSchema
from msx_frontend.models.versions.sleep import CannotSleep
from msx_sdk.generation import EMBED, GENERATE, AdapterFiles, Capabilities
from msx_sdk.kserve import Signature


def loaded(*methods: str, **offered: Any) -> VersionSchema:
    schema = VersionSchema("m")
    found = tuple(MethodInfo(name=name) for name in methods)
    said = {"capabilities": Capabilities(**offered), "signature": Signature(), "methods": found}
    group = SimpleNamespace(**said, runner=SimpleNamespace(overlaps=False), sequential="")
    schema.loaded(cast(Any, group))
    return schema


def test_before_the_first_load_nothing_is_known_of_operations_and_methods_are_the_workers_matter() -> None:
    schema = VersionSchema("m")
    assert not schema.offers(GENERATE)
    assert schema.offers(f"{METHOD}any")
    with pytest.raises(CannotSleep):
        schema.check_sleeps()


def test_what_the_handler_offers() -> None:
    schema = loaded("", "add", generate=True, sleep=True)
    assert schema.offers(GENERATE)
    assert schema.offers(METHOD)
    assert schema.offers(f"{METHOD}add")
    schema.check_sleeps()
    with pytest.raises(NotOffered):
        schema.offers(EMBED)
    with pytest.raises(HandlerMethodNotFound, match="add"):
        schema.offers(f"{METHOD}subtract")


def test_adapters_are_those_of_the_archive_and_then_loaded_ones() -> None:
    schema = loaded(generate=True, adapters=("packed",))
    schema.adapters = {"late": AdapterFiles(id="1", folder="/a", stamp="")}
    assert schema.adapter_names == ("packed", "late")
