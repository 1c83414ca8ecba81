"""Speculative decoding: tokens that a text is likely to go on with are computed along with its last one."""
