"""Which worker of a language model gets a request: the one that has computed what its prompt begins with."""
