"""Which files of a repository are fetched."""

from __future__ import annotations

import json

import pytest

from msx_frontend.archives.hub import chosen as module
from msx_frontend.archives.hub.chosen import INDEX, chosen
from msx_frontend.archives.hub.remote import HubError, HubFile


def files(*paths: str) -> list[HubFile]:
    return [HubFile(path, 10) for path in paths]


def names(*paths: str, data: bytes = b"") -> list[str]:
    return [file.path for file in chosen(files(*paths), lambda file: data, archive=False)]


def test_of_a_language_model_what_its_handler_reads() -> None:
    read = ["config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json", "model-config.yaml"]
    left = [".gitattributes", "README.md", "pytorch_model.bin", "modeling_own.py", "consolidated.safetensors"]
    assert names(*read, *left, "original/params.json", "onnx/config.json") == read


def test_weights_that_the_index_does_not_name_are_left() -> None:
    index = json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}).encode()
    read = ["config.json", INDEX, "model-1.safetensors", "model-2.safetensors"]
    assert names(*read, "consolidated.safetensors", data=index) == read


DESCRIBED = ["config.json", "quant_model_description.json"]


@pytest.mark.parametrize(
    "weights",
    [
        ["quant_model_weight_w8a8.safetensors"],
        [
            "quant_model_weights.safetensors.index.json",
            "quant_model_weights-00001-of-00002.safetensors",
            "quant_model_weights-00002-of-00002.safetensors",
        ],
    ],
)
def test_the_names_of_modelslim(weights: list[str]) -> None:
    assert names(*DESCRIBED, *weights, "README.md", "configuration.py") == DESCRIBED + weights


def test_weights_that_the_index_names_must_be_there() -> None:
    with pytest.raises(HubError, match=r"index\.json names model-2\.safetensors, which is not there"):
        names("config.json", INDEX, "model-1.safetensors", data=b'{"weight_map": {"a": "model-2.safetensors"}}')


@pytest.mark.parametrize("index", [b"{", b"[]", b'{"weight_map": 3}', b"{}"])
def test_an_index_that_cannot_be_read_is_refused(index: bytes) -> None:
    with pytest.raises(HubError, match="does not say in which files the weights are"):
        names("config.json", INDEX, "model-1.safetensors", data=index)


@pytest.mark.parametrize(
    "whole",
    [
        ["MAR-INF/MANIFEST.json", "handler.py", "net.ckpt", "data/labels.txt"],
        ["servable_config.py", "1/net.mindir"],
        ["handler.py", "other.py", "weights.ckpt"],
        ["own.py", "lib/x.py"],
        ["net.mindir", "net_variables/data_0"],
    ],
)
def test_of_others_everything_but_hidden_files(whole: list[str]) -> None:
    assert names(*whole, ".git/config", "lib/__pycache__/x.pyc") == whole


@pytest.mark.parametrize(
    ("paths", "why"),
    [
        (["config.json", "pytorch_model.bin"], r"it has no \*\.safetensors"),
        (["README.md"], "it cannot be served"),
        (["a.py", "b.py"], "it cannot be served"),
        (["handler.py", "../x"], r"leaves the model's folder by '\.\.'"),
        (["handler.py", "/etc/passwd"], "has an absolute path"),
        (["handler.py", "a\nb"], "has a control character"),
        (
            ["handler.py", "a/b", "a/b-c", "a/b/c/d"],
            "'a/b' is a file and the folder of 'a/b/c/d', which no disk can hold",
        ),
        (["handler.py", "a/b", "./a//b"], "'a/b' is there twice"),
    ],
)
def test_refused_before_anything_large_comes(paths: list[str], why: str) -> None:
    with pytest.raises(HubError, match=why):
        names(*paths)


def test_a_size_must_be_known() -> None:
    with pytest.raises(HubError, match=r"does not say how large handler\.py is"):
        chosen([HubFile("handler.py", -1)], lambda file: b"", archive=False)


def test_too_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 1)
    with pytest.raises(HubError, match="files, which is not one model"):
        names("handler.py", "b")
