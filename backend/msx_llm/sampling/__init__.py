"""How the next token is chosen."""

from msx_llm.sampling.bad_words import BadWords
from msx_llm.sampling.constraint import Constraints, ConstraintState
from msx_llm.sampling.logprobs import PromptScore, prompt_logprobs
from msx_llm.sampling.sampler import Chosen, Sampler, choose_all, verify_all

__all__ = [
    "BadWords",
    "Chosen",
    "ConstraintState",
    "Constraints",
    "PromptScore",
    "Sampler",
    "choose_all",
    "prompt_logprobs",
    "verify_all",
]
