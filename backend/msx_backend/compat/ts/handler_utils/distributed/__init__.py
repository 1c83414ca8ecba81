"""Helpers of parallel handlers, which are different here."""
