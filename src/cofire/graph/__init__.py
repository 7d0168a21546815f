"""The active graph of a space: what ranking runs on, derived from the database, never the truth."""
