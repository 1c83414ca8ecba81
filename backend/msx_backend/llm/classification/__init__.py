"""Texts and pairs of texts in, a score for each label out: encoders with a head for sequence classification."""
