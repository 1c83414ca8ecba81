"""APIs of other packages, found by their entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from msx_frontend import installed_plugins
from msx_frontend.apis.served_api import GROUP, ServedApi, installed_apis
from msx_frontend.installed_plugins import PluginError


def test_mindspore_servings_is_installed() -> None:
    (api,) = installed_apis()
    assert isinstance(api, ServedApi)


def test_what_is_no_api_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = EntryPoint("wrong", "json:dumps", GROUP)
    monkeypatch.setattr(installed_plugins, "found", lambda group: {"wrong": wrong})
    with pytest.raises(PluginError, match=r"wrong \(json:dumps .* is not a msx_frontend\.plugins\.families\.ServedApi"):
        installed_apis()
