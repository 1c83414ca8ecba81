from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from msx_core.failures import RequestFailure
from msx_sdk import PredictionError
from msx_torchserve.packages.ts.handler_utils.text_utils import get_tokenizer, ngrams_iterator
from msx_torchserve.packages.ts.handler_utils.utils import import_class
from msx_torchserve.packages.ts.torch_handler.contractions import CONTRACTION_MAP
from msx_torchserve.packages.ts.utils.util import (
    PredictionException,
    check_valid_pt2_backend,
    deprecated,
    get_yaml_config,
    list_classes_from_module,
    load_label_mapping,
    map_class_to_label,
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"0": ["n01440764", "tench"], "1": "dog"}, {"0": "tench", "1": "dog"}),
        ({"object_type_names": ["cat", "dog"]}, {"0": "cat", "1": "dog"}),
    ],
)
def test_labels(tmp_path: Path, content: Any, expected: dict[str, str]) -> None:
    (tmp_path / "index_to_name.json").write_text(json.dumps(content), "utf-8-sig")  # as some editors do
    assert load_label_mapping(tmp_path / "index_to_name.json") == expected


def test_labels_that_are_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load_label_mapping(tmp_path / "gone.json") is None
    assert "gone.json is missing" in caplog.text
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"list.json must be an object like .* not list"):
        load_label_mapping(tmp_path / "list.json")


def test_classes_to_labels() -> None:
    mapping = {"0": "a", "1": "b"}
    assert map_class_to_label([[0.1, 0.2]], mapping, [[1, 0]]) == [{"b": 0.1, "a": 0.2}]
    assert map_class_to_label([[0.1, 0.2]]) == [{"0": 0.1, "1": 0.2}]
    assert map_class_to_label([[0.1]], mapping, [[7]]) == [{"7": 0.1}], "a label that is missing fails no prediction"


@pytest.mark.parametrize(("code", "status"), [(404, 404), (500, 500), (200, 500), (700, 500)])
def test_prediction_exception(code: int, status: int) -> None:
    error = PredictionException("why", code)
    assert isinstance(error, PredictionError)
    assert (error.message, error.error_code, str(error)) == ("why", code, f"why : {code}")
    assert RequestFailure.of(error) == RequestFailure(status, "why")
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, again.error_code, again.status) == ("why", code, status)


def test_classes_of_a_module() -> None:
    module = ModuleType("made")
    exec("class A: pass\nclass B(A): pass\nfrom pathlib import Path", module.__dict__)
    base = module.__dict__["A"]
    assert [cls.__name__ for cls in list_classes_from_module(module)] == ["A", "B"]
    assert list_classes_from_module(module, base) == [base, module.__dict__["B"]]
    assert list_classes_from_module(module, Path) == []


def test_small_helpers(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("a: 1")
    assert get_yaml_config(tmp_path / "c.yaml") == {"a": 1}
    assert check_valid_pt2_backend("inductor")
    assert not check_valid_pt2_backend("none such")

    @deprecated("0.12", "new()", DeprecationWarning)
    def old() -> int:
        return 1

    with pytest.warns(DeprecationWarning, match=r"old is deprecated since 0.12: use new\(\)"):
        assert old() == 1


def test_import_class() -> None:
    assert import_class("pathlib.Path") is Path
    assert import_class("PurePath", "pathlib").__name__ == "PurePath"
    with pytest.raises(ImportError, match="module pathlib has no Nothing"):
        import_class("pathlib.Nothing")
    with pytest.raises(ImportError, match="'Path' has no module"):
        import_class("Path")


def test_tokens() -> None:
    text = 'Hello, (World)! it\'s 3.5<br />x;y:z "q"'
    expected = ["hello", ",", "(", "world", ")", "!", "it", "'", "s", "3", ".", "5", "x", "y", "z", "q"]
    assert get_tokenizer("basic_english")(text) == expected
    assert get_tokenizer(None)("a  b") == ["a", "b"]
    assert get_tokenizer(list)("ab") == ["a", "b"]
    with pytest.raises(ValueError, match="the tokenizer 'spacy' is unknown"):
        get_tokenizer("spacy")
    with pytest.raises(ValueError, match="for 'en', not 'de'"):
        get_tokenizer("basic_english", "de")
    assert list(ngrams_iterator(["a", "b", "c"], 2)) == ["a", "b", "c", "a b", "b c"]


def test_contractions() -> None:
    assert CONTRACTION_MAP["can't"] == "cannot"
    assert CONTRACTION_MAP["won't"] == "will not"
    assert CONTRACTION_MAP["they've"] == "they have"
    assert CONTRACTION_MAP["I'm"] == "I am"
    assert len(CONTRACTION_MAP) > 80
