"""The devices that models run on: which there are, how they are, and which worker group has which."""
