"""Rules that read time expressions: one module per family of languages over shared spans."""
