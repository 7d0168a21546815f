"""Cofire as a service: over MCP and REST, for whoever holds a key, and its worker.

`service.Service` is the one gate: every route and every tool goes through `Service.run`, which
checks what the caller may do (`actions`, `access`), opens the memory that they may see, bounds how
much runs at once, measures, and keeps the audit trail. Nothing else in this package holds a
`Memory`.
"""
