"""The child process of the server that talks to Ray: nothing else in MSX imports ray."""
