"""Packages under the names of other servers, for code that was written for them."""
