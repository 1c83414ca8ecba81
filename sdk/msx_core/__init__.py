"""The core that server, worker and SDK share. It is not for handler authors, and changes without notice."""
