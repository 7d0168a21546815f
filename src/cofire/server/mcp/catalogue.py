"""The tools that a server offers."""

from __future__ import annotations

from cofire.server.mcp import keeping, recalling
from cofire.server.mcp.answering import ANSWER
from cofire.server.mcp.tools import Tool

_RECALL, _FEEDBACK, _HYDRATE, _EXPLAIN = recalling.TOOLS
_STATS = keeping.TOOLS_AFTER[-1]

TOOLS: tuple[Tool, ...] = (
    *keeping.TOOLS_BEFORE,
    _RECALL,
    ANSWER,
    _FEEDBACK,
    *keeping.TOOLS_AFTER[:-1],
    _HYDRATE,
    _EXPLAIN,
    _STATS,
)
"""Cofire's own thirteen, in the order in which a model meets them."""


def tools_for(*, compat: bool) -> tuple[Tool, ...]:
    """Cofire's own tools, or those of the official memory server in their place."""
    if not compat:
        return TOOLS
    from cofire.server.mcp.graph_tools import GRAPH_TOOLS

    return GRAPH_TOOLS
