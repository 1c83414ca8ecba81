"""The examples of text classification, of BERT with captum, and of XGBoost."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.torch.examples.readme import Readme
from tests.torch.examples.weights import weights
from tests.torch.small_models import small_bert
from tests.torch_models import saved

np = pytest.importorskip("numpy")

pytestmark = [pytest.mark.torch, pytest.mark.e2e]

TOPICS = '{"0": "World", "1": "Sports", "2": "Business", "3": "Sci/Tec"}'
SAYING = "Bloomberg has decided to publish a new report on the global economy."
BERT_CONFIG = """
minWorkers: 1
maxWorkers: 1
handler: {mode: sequence_classification, do_lower_case: true, max_length: 40, embedding_name: bert}
pt2: {compile: {enable: True, backend: inductor, mode: reduce-overhead}}
"""


def test_text_classification(tmp_path: Path) -> None:
    """The vocabulary is a dict: torchtext, whose Vocab it was, is no more."""
    pytest.importorskip("captum")
    folder = "examples/text_classification"
    files = {
        f"{folder}/model.py": "text_sentiment_model.py",
        f"{folder}/index_to_name.json": TOPICS,
        f"{folder}/sample_text.txt": f"{SAYING}\n",
    }
    readme = Readme(tmp_path, files)
    readme.write(f"{folder}/model.pt", weights(tmp_path / folder / "model.py"))
    words = {word: number for number, word in enumerate(("<unk>", *SAYING.lower().rstrip(".").split()))}
    readme.write(f"{folder}/source_vocab.pt", saved(defaultdict(int, words)))
    readme.types(
        "torch-model-archiver --model-name my_text_classifier --version 1.0 --model-file model.py --serialized-file "
        'model.pt --handler text_classifier --extra-files "index_to_name.json,source_vocab.pt"',
        "mkdir ../../model_store",
        "mv my_text_classifier.mar ../../model_store/",
        folder=folder,
    )
    start = "torchserve --start --model-store model_store --models my_tc=my_text_classifier.mar --disable-token-auth"
    with readme.serves(f"{start} --enable-model-api") as served:
        text = readme.read(f"{folder}/sample_text.txt")
        topics = served.sends("/predictions/my_tc", text).json()
        explained = served.sends("/explanations/my_tc", text).json()
    assert set(topics) == {"World", "Sports", "Business", "Sci/Tec"}
    assert sum(topics.values()) == pytest.approx(1)
    assert {"words", "importances"} <= set(explained)


def test_bert_with_captum(tmp_path: Path) -> None:
    pytest.importorskip("captum")
    folder = "examples/Huggingface_Transformers"
    asked = f"{folder}/Seq_classification_artifacts/sample_text_captum_input.txt"
    files = {
        f"{folder}/Transformer_handler_generalized.py": "transformer.py",
        f"{folder}/model-config.yaml": BERT_CONFIG,
        f"{folder}/Seq_classification_artifacts/index_to_name.json": '{"0": "Not Accepted", "1": "Accepted"}',
        asked: json.dumps({"text": SAYING, "target": 1}),
    }
    readme = Readme(tmp_path, files)
    config = f"{folder}/model-config.yaml"
    compiled = b"backend: inductor", b"mode: reduce-overhead"
    text = readme.read(config).replace(compiled[0], b"backend: eager").replace(compiled[1], b"dynamic: false")
    readme.write(config, text)
    made = tmp_path / folder / "Transformer_model"
    small_bert(made, SAYING.lower().replace(".", " .").split(), "BertForSequenceClassification")
    more = ",".join(
        f"Transformer_model/{file.name}" for file in sorted(made.iterdir()) if "safetensors" not in file.name
    )
    readme.types(
        "torch-model-archiver --model-name BERTSeqClassification --version 1.0 --serialized-file "
        "Transformer_model/model.safetensors --handler ./Transformer_handler_generalized.py --config-file "
        f'model-config.yaml --extra-files "{more},./Seq_classification_artifacts/index_to_name.json"',
        "mkdir model_store",
        "mv BERTSeqClassification.mar model_store/",
        folder=folder,
    )
    start = "torchserve --start --model-store model_store --models my_tc=BERTSeqClassification.mar --ncs"
    with readme.serves(f"{start} --disable-token-auth --enable-model-api", folder=folder) as served:
        accepted = served.sends("/predictions/my_tc", readme.read(asked)).text
        explained = served.sends("/explanations/my_tc", readme.read(asked)).json()
    assert accepted in ("Accepted", "Not Accepted")
    assert explained["words"][:3] == ["[CLS]", "bloomberg", "has"]
    assert len(explained["importances"]) == len(explained["words"]) == 15
    assert isinstance(explained["delta"], float)


def test_xgboost(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    pytest.importorskip("sklearn")
    folder = "examples/xgboost_classfication"
    files = {
        f"{folder}/xgboost_iris_handler.py": "iris.py",
        f"{folder}/index_to_name.json": '{"0": "setosa", "1": "versicolor", "2": "virginica"}',
        f"{folder}/model-config.yaml": "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 2\n",
        f"{folder}/sample_input_1.txt": "6.1,2.8,4.7,1.2\n",
        f"{folder}/sample_input_2.txt": "5.1,3.5,1.4,0.2\n",
    }
    readme = Readme(tmp_path, files)
    centres = np.array([[5.0, 3.4, 1.5, 0.2], [6.0, 2.8, 4.4, 1.3], [6.6, 3.0, 5.6, 2.0]])
    rows = np.repeat(centres, 20, axis=0) + np.random.default_rng(7).normal(0, 0.1, (60, 4))
    forest = xgboost.XGBClassifier(n_estimators=4).fit(rows, np.repeat([0, 1, 2], 20))
    forest.save_model(tmp_path / folder / "iris_model.json")
    readme.types(
        "mkdir model_store",
        "torch-model-archiver --model-name xgb_iris --version 1.0 --serialized-file iris_model.json --handler "
        "xgboost_iris_handler.py --export-path model_store --extra-files index_to_name.json --config-file "
        "model-config.yaml -f",
        folder=folder,
    )
    start = "torchserve --start --ncs --model-store model_store --models xgb_iris=xgb_iris.mar --disable-token-auth"
    with readme.serves(f"{start} --enable-model-api", folder=folder) as served:
        samples = [readme.read(f"{folder}/sample_input_{number}.txt") for number in (1, 2)]
        assert [served.sends("/predictions/xgb_iris", one).text for one in samples] == ["versicolor", "setosa"]
