"""Made-up sentences about four topics, as many as wanted."""

import random

TOPICS = {
    "weather": (
        ["rain", "snow", "wind", "sunshine", "fog", "thunder", "hail", "clouds"],
        [
            "will reach the coast",
            "covers the valley",
            "is expected in the north",
            "ends before noon",
            "returns tonight",
        ],
    ),
    "sport": (
        ["the striker", "our goalkeeper", "the champion", "the team", "the coach", "the runner", "the league"],
        ["won the match", "missed a penalty", "set a record", "plays the final", "trains for the cup"],
    ),
    "cooking": (
        ["the soup", "this bread", "the sauce", "a roast chicken", "the dough", "the salad", "a cake"],
        ["needs more salt", "bakes for an hour", "tastes of garlic", "rests in the oven", "is served with butter"],
    ),
    "computers": (
        ["the server", "this program", "the network", "a compiler", "the disk", "the database", "a processor"],
        ["runs out of memory", "was updated", "crashed at start", "stores the files", "answers every request"],
    ),
}
OPENINGS = ["", "today", "they say", "as we heard", "this week", "i think", "in the evening"]
ENDINGS = ["", "again", "at last", "for the first time", "as usual", "and nobody knows why", "said a neighbour"]


def sentences(count: int, seed: int) -> list[tuple[str, int]]:
    """(sentence, number of its topic)"""
    dice, made = random.Random(seed), []
    for _ in range(count):
        number = dice.randrange(len(TOPICS))
        subjects, actions = list(TOPICS.values())[number]
        parts = dice.choice(OPENINGS), dice.choice(subjects), dice.choice(actions), dice.choice(ENDINGS)
        made.append((" ".join(filter(None, parts)), number))
    return made
