"""Texts and pairs of texts in, a score for each label out: encoders and decoders with a head for that, and language
models that answer with a word."""
