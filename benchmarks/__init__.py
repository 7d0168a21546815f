"""Measurements: how fast it is, beside others where they are installed. See README.md."""
