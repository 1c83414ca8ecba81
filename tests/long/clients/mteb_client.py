"""MTEB measures a model behind OpenAI's embeddings, with a task of its own, as the data of others lie elsewhere."""

import mteb
import tiktoken
from datasets import Dataset
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.model_implementations.openai_models import OpenAIModel
from openai import OpenAI
from server import KEY, URL

LETTERS = tiktoken.Encoding(
    "letters", pat_str=r"(?s).", mergeable_ranks={bytes([n]): n for n in range(256)}, special_tokens={}
)
"""In place of OpenAI's tokens, whose file would be fetched."""
tiktoken.get_encoding = lambda name: LETTERS


class Lengths(AbsTaskSTS):
    """The parrot's vectors are those of lengths: texts of the same length are alike."""

    metadata = TaskMetadata(
        name="Lengths",
        dataset={"path": "local/lengths", "revision": "1"},
        description="Texts by their lengths",
        reference=None,
        type="STS",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="cosine_spearman",
        date=("2026-01-01", "2026-01-02"),
        domains=["Web"],
        task_subtypes=[],
        license="mit",
        annotations_creators="derived",
        dialect=[],
        sample_creation="created",
        bibtex_citation="",
    )
    min_score, max_score = 0, 1

    def load_data(self, **options):
        firsts, seconds = ["a", "a", "a", "aa"], ["b", "bbb", "b" * 30, "b" * 300]
        scores = [1.0, 0.8, 0.5, 0.1]
        rows = {"sentence1": firsts, "sentence2": seconds, "score": scores}
        self.dataset, self.data_loaded = {"test": Dataset.from_dict(rows)}, True


def check_a_task():
    client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    model = OpenAIModel("parrot", max_tokens=512, embed_dim=4, client=client)
    (found,) = mteb.evaluate(model, Lengths(), cache=None, overwrite_strategy="always").task_results
    assert found.scores["test"][0]["cosine_spearman"] > 0.7
