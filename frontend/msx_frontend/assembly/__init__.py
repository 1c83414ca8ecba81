"""One server: its parts are made, started and stopped here."""
