"""The API families: each translates one wire format. They are independent of each other."""
