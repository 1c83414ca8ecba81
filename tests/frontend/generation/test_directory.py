"""Which model a request means."""

from __future__ import annotations

from pathlib import Path

import pytest

from msx_core.service_errors import ModelNotFound, ModelVersionNotFound, NotOffered, ServiceUnavailable
from msx_frontend.generation.directory import Directory
from msx_frontend.generation.errors import WrongParameter
from msx_sdk.generation import EMBED, GENERATE, TOKENIZE, Capabilities
from tests.frontend.harness import FakeGroup, Harness, in_harness

TEXT = Capabilities(generate=True)


@pytest.mark.parametrize("alias", [None, "", "dummy", "tgi"])
def test_the_only_one_goes_by_any_alias(tmp_path: Path, alias: str | None) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers = {"a": TEXT, "e": Capabilities(embed=True)}
        for model in ("a", "e", "plain"):
            await harness.register(model)
        directory = Directory(harness.registry)
        assert directory.find(alias, GENERATE).source.name == "a"
        assert directory.find(alias, EMBED).source.name == "e"
        assert [version.source.name for version in directory.language_models()] == ["a", "e"]

    in_harness(tmp_path, test)


def test_names(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers = {"a": TEXT, "tgi": TEXT}
        await harness.register("a", "1.0")
        await harness.register("a", "2.0")
        await harness.register("tgi")
        directory = Directory(harness.registry)
        assert directory.find("a", GENERATE).labels == ("a", "1.0")
        assert directory.find("a", GENERATE, "2.0").labels == ("a", "2.0")
        assert directory.find("tgi", GENERATE).labels == ("tgi", "1.0")
        with pytest.raises(NotOffered, match='Model "a" does not embed text'):
            directory.find("a", EMBED)
        with pytest.raises(ModelNotFound, match=r"Model not found: crow\. The models that can generate text: a, tgi\."):
            directory.find("crow", GENERATE)
        with pytest.raises(ModelVersionNotFound):
            directory.find("a", GENERATE, "3.0")

    in_harness(tmp_path, test)


def test_adapters(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers = {
            "a": Capabilities(generate=True, adapters=("sql", "both")),
            "b": Capabilities(generate=True, adapters=("both",)),
        }
        await harness.register("a")
        await harness.register("b")
        directory = Directory(harness.registry)
        for name, wanted in {
            "a": ("a", ""),
            "a:sql": ("a", "sql"),
            "b:both": ("b", "both"),
            "sql": ("a", "sql"),
        }.items():
            version, adapter, _ = directory.find_adapted(name, GENERATE)
            assert (version.source.name, adapter) == wanted
        with pytest.raises(ModelNotFound, match=r"b:sql\. Its adapters: both\."):
            directory.find_adapted("b:sql", GENERATE)
        with pytest.raises(ModelNotFound, match=r"both\. The models that can generate text: a, b\."):
            directory.find_adapted("both", GENERATE)  # two models have it

    in_harness(tmp_path, test)


def test_several_need_a_name(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers = {"a": TEXT, "b": TEXT}
        await harness.register("a")
        await harness.register("b")
        directory = Directory(harness.registry)
        with pytest.raises(WrongParameter, match=r"model: needed, since there is more than one .*: a, b"):
            directory.find(None, GENERATE)
        with pytest.raises(ModelNotFound, match=r"dummy\. The models that can generate text: a, b\."):
            directory.find("dummy", GENERATE)
        with pytest.raises(ModelNotFound, match=r"crow\. The server does not have models that can embed text\."):
            directory.find("crow", EMBED)

    in_harness(tmp_path, test)


def test_none_and_none_yet(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        directory = Directory(harness.registry)
        with pytest.raises(ModelNotFound, match="none that can generate text is loaded"):
            directory.find(None, GENERATE)
        FakeGroup.loading.add("a")
        await harness.register("a", synchronous=False)
        with pytest.raises(ServiceUnavailable, match="still loading"):
            directory.find(None, GENERATE)
        assert directory.find("a", GENERATE).labels == ("a", "1.0")  # its queue has the better word

    in_harness(tmp_path, test)


# -- TGI's clients, who name none --


def test_the_first_that_was_registered(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers = {"z": Capabilities(embed=True), "n": TEXT, "a": TEXT}
        for model in ("z", "plain", "n", "a"):
            await harness.register(model)
        directory = Directory(harness.registry)
        for alias in (None, "", "tgi", "dummy"):
            assert directory.find_for_tgi(alias, GENERATE).labels == ("n", "1.0")
        assert directory.find_for_tgi("a", GENERATE).labels == ("a", "1.0")
        with pytest.raises(ModelNotFound, match=r"crow\. The models that can generate text: a, n\."):
            directory.find_for_tgi("crow", GENERATE)
        with pytest.raises(ModelNotFound, match="none that can tokenize text is loaded"):
            directory.find_for_tgi(None, TOKENIZE)
        await harness.management.unregister("n", "1.0")
        assert directory.find_for_tgi(None, GENERATE).labels == ("a", "1.0")

    in_harness(tmp_path, test)


def test_no_other_model_answers_while_the_first_is_loaded(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers = {"n": TEXT, "a": TEXT}
        FakeGroup.loading.add("n")
        await harness.register("n", synchronous=False)
        await harness.register("a")
        with pytest.raises(ServiceUnavailable, match="still loading"):
            Directory(harness.registry).find_for_tgi(None, GENERATE)
        assert Directory(harness.registry, "a").find_for_tgi(None, GENERATE).labels == ("a", "1.0")

    in_harness(tmp_path, test)


def test_every_name_may_end_as_ollama_s(tmp_path: Path) -> None:
    async def test(harness: Harness) -> None:
        FakeGroup.offers = {
            "a": Capabilities(generate=True, embed=True, tokenize=True),
            "b": Capabilities(generate=True, adapters=("latest", "french")),
        }
        await harness.register("a")
        await harness.register("b")
        directory = Directory(harness.registry)
        version, adapter, _ = directory.find_adapted("a:latest", GENERATE)
        assert (version.source.name, adapter) == ("a", "")
        assert directory.find("a:latest", EMBED).source.name == "a"
        assert directory.find_for_tokens("a:latest").source.name == "a"
        for name, meant in {"b:latest": "latest", "b:french:latest": "french", "french:latest": "french"}.items():
            assert directory.find_adapted(name, GENERATE).adapter == meant
        with pytest.raises(ModelNotFound, match="crow:latest"):
            directory.find_adapted("crow:latest", GENERATE)

    in_harness(tmp_path, test)
