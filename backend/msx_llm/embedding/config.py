"""`config.json` of an encoder, as Hugging Face transformers writes it."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from msx_core.validation import wrong_value
from msx_llm.models.key_types import Layers, Size
from msx_llm.models.members import IGNORED, ConfigMembers
from msx_sdk.errors import HandlerLoadError

Activation = Literal["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"]

ENCODERS = {
    "bert": "bert",
    "roberta": "roberta",
    "xlm-roberta": "roberta",
    "camembert": "roberta",
    "distilbert": "distilbert",
}
"""model_type to the prefix of the encoder's tensors in files of a model with a head."""
SEGMENTED = ("bert",)
"""Families whose tokenizers tell the second text of a pair from the first one."""
_AFTER_PADDING = ("roberta", "xlm-roberta", "camembert")
"""Families that count positions from `pad_token_id + 1` on."""
_DISTILBERT = {
    "dim": "hidden_size",
    "hidden_dim": "intermediate_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "activation": "hidden_act",
}


_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (None, False),
    "compression_config": (None,),
    "embedding_size": (None,),
    "feed_forward_type": (None, "original"),
    "is_encoder_decoder": (None, False),
    "num_experts": (None, 0),
    "per_layer_config": (None, {}),
    "pruned_heads": (None, {}),
    "quantization_config": (None,),
    "rope_parameters": (None, {}),
    "rope_scaling": (None, {}),
    "use_qk_norm": (None, False),
}
_BY_WEIGHTS = frozenset({"sinusoidal_pos_embds", "tie_weights_", "tie_word_embeddings", "type_vocab_size"})
"""Keys whose values follow from the tensors."""
_DROPOUT = frozenset({"attention_probs_dropout_prob", "dropout", "qa_dropout", "seq_classif_dropout"})
_POOLER = frozenset(
    f"pooler_{name}" for name in ("fc_size", "num_attention_heads", "num_fc_layers", "size_per_head", "type")
)


class EncoderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that the network needs, under BERT's names."""

    model_type: str
    vocab_size: Size
    hidden_size: Size
    num_hidden_layers: Layers
    num_attention_heads: Size
    intermediate_size: Size
    max_position_embeddings: Size
    hidden_act: Activation = "gelu"
    layer_norm_eps: Annotated[float, Meta(gt=0)] = 1e-12
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    pad_token_id: int | None = 0

    @property
    def first_position(self) -> int:
        """The row of the position table for a text's first token."""
        return (self.pad_token_id or 0) + 1 if self.model_type in _AFTER_PADDING else 0

    @property
    def context(self) -> int:
        """The most tokens of a text."""
        return self.max_position_embeddings - self.first_position


_READ = frozenset(EncoderConfig.__struct_fields__) | _DISTILBERT.keys() | {"dtype", "torch_dtype"}
MEMBERS = ConfigMembers(_READ, _NEUTRAL, IGNORED | _BY_WEIGHTS | _DROPOUT | _POOLER | {"directionality", "is_causal"})


def encoder_config(raw: dict[str, Any]) -> EncoderConfig:
    """Raises HandlerLoadError, which names the key and what was expected."""
    MEMBERS.check(raw)
    if raw.get("model_type") == "distilbert":
        raw = {_DISTILBERT.get(key, key): value for key, value in raw.items()} | {"layer_norm_eps": 1e-12}
    known = {field.name for field in msgspec.structs.fields(EncoderConfig)}
    given = {key: value for key, value in raw.items() if key in known and (value is not None or key == "pad_token_id")}
    try:
        config = msgspec.convert(given, EncoderConfig)
    except msgspec.ValidationError as error:
        key, expected = wrong_value(error)
        raise HandlerLoadError(f"config.json{f', {key}' if key else ''}: {expected}") from None
    if config.hidden_size % config.num_attention_heads:
        raise HandlerLoadError(
            f"config.json: hidden_size {config.hidden_size} cannot be divided by num_attention_heads "
            f"{config.num_attention_heads}"
        )
    return config
