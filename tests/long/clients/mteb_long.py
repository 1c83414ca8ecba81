"""MTEB measures a model of vectors behind OpenAI's embeddings."""

import mteb
from mteb.models.model_implementations.openai_models import OpenAIModel
from mteb_client import Lengths
from openai import OpenAI
from server import KEY, URL


def check_a_task():
    client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)
    size = len(client.embeddings.create(model="vectors", input="a").data[0].embedding)
    model = OpenAIModel("vectors", max_tokens=512, embed_dim=size, client=client)
    (found,) = mteb.evaluate(model, Lengths(), cache=None, overwrite_strategy="always").task_results
    assert -1 <= found.scores["test"][0]["cosine_spearman"] <= 1
