"""The keys that open the server: those that it makes, those that an operator gives, and what each is good for."""
