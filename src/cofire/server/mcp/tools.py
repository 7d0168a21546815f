"""What a tool is: a name, a text for models, its arguments and answer, and the verb behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from cofire.server.access import Caller, Where
from cofire.server.actions import NEEDS, WRITES, Action
from cofire.server.mcp.fields import Field, object_schema

if TYPE_CHECKING:
    from cofire.memory import Memory
    from cofire.server.service import Service

R = TypeVar("R")

Answer = dict[str, Any]
"""What a tool answers: an object that is JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call: who asks, whose memories the connection is about, and by which service.
    `request` is the id under which the log and the audit trail know it."""

    service: Service
    caller: Caller
    where: Where
    request: str

    async def run(
        self,
        action: Action,
        verb: Callable[[Memory], R],
        *,
        count: Callable[[R], int] | None = None,
    ) -> R:
        """What a verb of the memory gives. Raises as `Service.run`."""
        return await self.service.run(
            self.caller, action, self.where, verb,
            surface="mcp", request=self.request, count=count,
        )  # fmt: skip


Body = Callable[[Call, Mapping[str, Any]], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. `about` tells a model when to call it, what comes back, and gives an example.
    `actions` are what it asks the service for; the first says what it takes to call it.
    `teaches`: it may teach, though its actions only read. `destroys`: it deletes or overwrites.
    `repeatable`: calling it again with the same arguments changes nothing more. `answer` is the
    schema of what comes back."""

    name: str
    title: str
    about: str
    actions: tuple[Action, ...]
    body: Body
    fields: tuple[Field, ...] = ()
    answer: Mapping[str, Any] = field(default_factory=dict)
    teaches: bool = False
    destroys: bool = False
    repeatable: bool = False

    @property
    def reads_only(self) -> bool:
        """Whether it changes nothing that its caller could see."""
        return not self.teaches and not any(action in WRITES for action in self.actions)

    @property
    def input_schema(self) -> dict[str, Any]:
        """The arguments as JSON schema."""
        return object_schema(self.fields)

    @property
    def output_schema(self) -> dict[str, Any]:
        """The answer as JSON schema."""
        return {"type": "object", "properties": dict(self.answer)}


def named(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Tools by name. Raises ValueError for two of one name or an action that does not exist."""
    found = {tool.name: tool for tool in tools}
    if len(found) != len(tools) or any(a not in NEEDS for tool in tools for a in tool.actions):
        raise ValueError("two tools of one name, or an action that nothing is said of")
    return found


TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "number"}
WHOLE: Mapping[str, Any] = {"type": "integer"}
YES_NO: Mapping[str, Any] = {"type": "boolean"}
TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
OBJECT: Mapping[str, Any] = {"type": "object"}
OBJECTS: Mapping[str, Any] = {"type": "array", "items": {"type": "object"}}


def said(answer: Answer) -> Answer:
    """The answer without what is empty, which costs a model tokens and tells it nothing."""
    return {name: value for name, value in answer.items() if value not in (None, (), [], {}, "")}
