"""Scores the task of this folder twice, with lm-eval: by a server's completions, and by transformers.

python evaluate.py URL KEY MODEL_FOLDER OUTPUT, in the environment `evaluation`. Writes as JSON, for each way of them,
what each continuation of each document got: [log-likelihood, whether it is the greedy one].
"""

import json
import os
import sys
from pathlib import Path

import lm_eval
from lm_eval.tasks import TaskManager

HERE = Path(__file__).parent
TASK = "words"


def scores(model, arguments):
    found = lm_eval.simple_evaluate(
        model=model,
        model_args=arguments,
        tasks=[TASK],
        task_manager=TaskManager(include_path=str(HERE / "task"), include_defaults=False),
        log_samples=True,
        bootstrap_iters=0,
        batch_size=4,
    )
    samples = sorted(found["samples"][TASK], key=lambda sample: sample["doc_id"])
    return [[[float(response[0][0]), bool(response[0][1])] for response in sample["resps"]] for sample in samples]


def main():
    url, key, folder, output = sys.argv[1:]
    os.environ["OPENAI_API_KEY"] = key
    os.chdir(HERE)
    served = {
        "model": "llama",
        "base_url": f"{url}/v1/completions",
        "tokenizer": folder,
        "tokenizer_backend": "huggingface",
    }
    served |= {"num_concurrent": 4, "max_length": 256}
    own = {"pretrained": folder, "dtype": "float32", "device": "cpu"}
    ways = {"plain": False, "with special tokens": True}
    result = {
        way: {
            "served": scores("local-completions", {**served, "add_bos_token": special}),
            "transformers": scores("hf", {**own, "add_bos_token": special}),
        }
        for way, special in ways.items()
    }
    Path(output).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
