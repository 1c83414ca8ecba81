"""As TorchServe's language examples: the model generates in a thread, and what it has so far goes out meanwhile."""

from threading import Thread

import torch
from ts.handler_utils.hf_batch_streamer import TextIteratorStreamerBatch
from ts.handler_utils.utils import send_intermediate_predict_response
from ts.torch_handler.base_handler import BaseHandler


class Letters:
    """A tokenizer: a token is a letter, and 0 a space."""

    def decode(self, tokens, **kwargs):
        return "".join(" " if token == 0 else chr(96 + token) for token in tokens)


class StreamingHandler(BaseHandler):
    def preprocess(self, data):
        rows = [row.get("data") or row.get("body") for row in data]
        return torch.tensor([[ord(row.decode()[0]) - 96] for row in rows], device=self.device)

    def inference(self, data, *args, **kwargs):
        streamer = TextIteratorStreamerBatch(Letters(), batch_size=len(data), skip_prompt=True, timeout=60)
        thread = Thread(target=self.generate, args=(data, streamer))
        thread.start()
        for texts in streamer:
            send_intermediate_predict_response(
                texts[: len(self.context.request_ids)],
                self.context.request_ids,
                "Intermediate Prediction success",
                200,
                self.context,
            )
        thread.join()
        return [""] * len(data)

    def postprocess(self, data):
        return data

    @torch.no_grad()
    def generate(self, tokens, streamer):
        streamer.put(tokens)
        for step in range(6):
            best = self.model(tokens[:, -1:])[..., 1:].argmax(-1) + 1
            following = best if step % 3 < 2 else torch.zeros_like(best)
            tokens = torch.cat([tokens, following], dim=1)
            streamer.put(following[:, 0])
        streamer.end()
