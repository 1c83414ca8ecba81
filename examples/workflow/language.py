"""A placeholder for a model that recognizes languages."""

KNOWN = {"de": {"das", "ist", "ein", "und"}, "en": {"the", "is", "a", "and"}}


def handle(data, context):
    return [_language(row["body"].decode().split()) for row in data]


def _language(words):
    return max(KNOWN, key=lambda name: sum(word in KNOWN[name] for word in words))
