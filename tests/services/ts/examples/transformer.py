"""As the handler of TorchServe's example of Hugging Face's Transformers, for sequences alone: with captum."""

import ast
import json
from pathlib import Path

import torch
from captum.attr import LayerIntegratedGradients
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from ts.torch_handler.base_handler import BaseHandler


class SequenceClassifier(BaseHandler):
    def initialize(self, ctx):
        self.manifest, config = ctx.manifest, ctx.model_yaml_config
        self.setup_config = config.get("handler", {})
        folder = Path(ctx.system_properties.get("model_dir"))
        self.device = torch.device("cpu")
        self.model = AutoModelForSequenceClassification.from_pretrained(str(folder)).to(self.device).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(str(folder), do_lower_case=self.setup_config["do_lower_case"])
        options = dict(config.get("pt2", {}).get("compile", {}))
        if options.pop("enable", False):
            self.model = torch.compile(self.model, **options)
        self.mapping = json.loads((folder / "index_to_name.json").read_text())
        self.initialized = True

    def preprocess(self, requests):
        texts = [ast.literal_eval((row.get("data") or row.get("body")).decode("utf-8"))["text"] for row in requests]
        length = int(self.setup_config["max_length"])
        encoded = self.tokenizer(texts, max_length=length, padding="max_length", truncation=True, return_tensors="pt")
        return encoded["input_ids"].to(self.device), encoded["attention_mask"].to(self.device)

    @torch.inference_mode
    def inference(self, input_batch):
        [logits] = self.model(*input_batch).to_tuple()
        return [self.mapping[str(row.argmax().item())] for row in logits]

    def postprocess(self, inference_output):
        return inference_output

    def get_insights(self, input_batch, text, target):
        asked = ast.literal_eval(text.decode("utf-8") if isinstance(text, (bytes, bytearray)) else text)
        tokenizer = self.tokenizer
        words = tokenizer.encode(asked["text"], add_special_tokens=False)
        ids, padded = (
            torch.tensor([[tokenizer.cls_token_id, *row, tokenizer.sep_token_id]])
            for row in (words, [tokenizer.pad_token_id] * len(words))
        )
        embeddings = getattr(self.model, self.setup_config["embedding_name"]).embeddings
        gradients = LayerIntegratedGradients(lambda ids, mask: self.model(ids, attention_mask=mask)[0], embeddings)
        given = {"target": asked["target"], "additional_forward_args": (torch.ones_like(ids),)}
        found, delta = gradients.attribute(inputs=ids, baselines=padded, return_convergence_delta=True, **given)
        found = found.sum(dim=-1).squeeze(0)
        return [
            {
                "words": tokenizer.convert_ids_to_tokens(ids[0].tolist()),
                "importances": (found / torch.norm(found)).tolist(),
                "delta": delta[0].tolist(),
            }
        ]
