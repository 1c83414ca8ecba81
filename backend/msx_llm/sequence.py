"""One of the texts of a request while it is generated."""

from dataclasses import dataclass, field

from msx_llm.adapters.adapter import Adapter
from msx_llm.sampling import Sampler
from msx_llm.speculation.drafts import TextDrafts
from msx_llm.step import UNREAD, Preparation
from msx_sdk.generation import Owner

Order = tuple[int, int, int]
"""Priority, number of the request, index of the text: the smallest is served first."""


@dataclass(slots=True, eq=False)
class TokenSequence:
    """`tokens` are those of the prompt and those generated since. Of them, `computed` are in the cache, at `slot`."""

    tokens: list[int]
    order: Order
    limit: int
    """The most tokens of the text, including its prompt."""
    sampler: Sampler
    adapter: Adapter | None = None
    scored: bool = False
    """The logits of all places of the prompt are wanted, so that none may come from the cache."""
    shares: bool = True
    """Other texts with the same beginning may use its keys and values."""
    prompt: int = 0
    slot: int | None = None
    computed: int = 0
    before: list[Preparation] = field(default_factory=list)
    """Steps to be executed before the next token of this sequence."""
    parts: int = 0
    """Where other texts go on in other ways: the state behind so many tokens is to be kept; 0: none is."""
    in_flight: bool = False
    finished: bool = False
    cached: int | None = None
    """Tokens of the prompt that were cached when the sequence first got a slot."""
    drafts: TextDrafts | None = None
    """None: the text is made token by token."""
    turn: int = 0
    """The number of the last step with this sequence."""
    given_way: int = 0
    """How many later texts of a better priority went first."""
    asked_by: Owner | None = None
    """None: its request shares a turn with no other."""
    entered: int = 0
    """The number of its admission: prompts of one priority are computed in that order."""
    owner: Owner = field(init=False)

    def __post_init__(self) -> None:
        self.prompt = len(self.tokens)
        self.owner = self.asked_by or Owner("", -1 - self.request)

    @property
    def priority(self) -> int:
        return self.order[0]

    @property
    def request(self) -> int:
        return self.order[1]

    @property
    def index(self) -> int:
        return self.order[2]

    @property
    def left(self) -> int:
        """How many tokens are not in the cache. With 1, the next token can be decoded."""
        return len(self.tokens) - self.computed

    @property
    def until_parts(self) -> int:
        """How many tokens may be computed at once, so that a state can be kept where texts part."""
        return self.parts - self.computed if self.computed < self.parts else self.left

    @property
    def made(self) -> int:
        """Tokens that were generated, and read."""
        return len(self.tokens) - self.prompt - (self.tokens[-1] == UNREAD)

    def place(self, slot: int, cached: int, before: list[Preparation], parts: int = 0) -> None:
        self.slot, self.computed, self.before, self.parts = slot, cached, before, parts
        if self.cached is None:
            self.cached = cached

    def displace(self) -> None:
        self.slot, self.computed, self.before, self.parts = None, 0, [], 0
