"""The tools that keep memories: remember, get, list, update, forget, link, strengthen, count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cofire.errors import ConfirmationNeededError, InputError
from cofire.server.actions import Action
from cofire.server.mcp.fields import Field
from cofire.server.mcp.notes import model_notes
from cofire.server.mcp.recalling import KINDS, SINCE, TAGS, TRUSTED, UNTIL
from cofire.server.mcp.rendering import item_line, item_whole
from cofire.server.mcp.tools import (
    NUMBER,
    OBJECTS,
    TEXT,
    TEXTS,
    WHOLE,
    YES_NO,
    Answer,
    Call,
    Tool,
    said,
)
from cofire.types import (
    VISIBLE_KINDS,
    Deletion,
    Item,
    Learned,
    Link,
    LinkType,
    Page,
    Receipt,
    SpaceStats,
    Stats,
)

if TYPE_CHECKING:
    from cofire.memory import Memory

PAGE, MOST_PAGE = 10, 100
"""Memories of a page of a list: where no number is given, and at most."""
LIST_TOKENS = 2_000
"""Wordpieces of a page: what did not fit stands on the next one."""

ID = Field(name="id", required=True, about="The memory's id.")
TITLE = Field(name="title", about="A short heading.")
TAGGED = Field(name="tags", type="array", about="Labels to filter by later.")
IMPORTANCE = Field(name="importance", type="integer", least=1, most=10, about="1 to 10. Default 5.")
EXPIRES = Field(name="expires", about="ISO 8601 time from which it is no longer recalled.")
PINNED = Field(name="pinned", type="boolean", about="Always in the context hydrate gives.")


async def remember(call: Call, given: Mapping[str, Any]) -> Answer:
    """Store one text. When it returns, it is on disk."""

    def verb(memory: Memory) -> Receipt:
        return memory.remember(given["content"], **_but(given, "content"))

    receipt = await call.run(Action.REMEMBER, verb, count=lambda one: len(one.ids))
    notes = list(model_notes(receipt.warnings))
    if not receipt.ids:
        return {"stored": False, "notes": notes}
    new = receipt.created[0]
    if not new:
        notes.append("This key had been remembered before; nothing changed")
    return said({"id": receipt.id, "stored": new, "notes": notes})


async def get_memory(call: Call, given: Mapping[str, Any]) -> Answer:
    """One memory, whole."""

    def verb(memory: Memory) -> tuple[Item, tuple[Link, ...]]:
        return memory.get(given["id"]), memory.links(given["id"])

    item, links = await call.run(Action.GET, verb, count=lambda _: 1)
    offset = given.get("offset", 0)
    if offset and offset >= len(item.content):
        raise InputError(f"`offset` must be below the text's {len(item.content)} characters")
    return item_whole(item, links, offset=offset)


async def list_memories(call: Call, given: Mapping[str, Any]) -> Answer:
    """A page of memories by time."""

    def verb(memory: Memory) -> tuple[Answer, int]:
        page = memory.list(
            limit=given.get("limit", PAGE), after=given.get("cursor"),
            newest_first=not given.get("oldest_first", False),
            kinds=given.get("kinds", ()), tags=given.get("tags", ()),
            sessions=given.get("session", ()), speakers=given.get("speaker", ()),
            since=given.get("since"), until=given.get("until"),
            trusted_only=given.get("trusted_only", False),
            archived=given.get("archived", False),
        )  # fmt: skip
        return _page(memory, page), len(page)

    answer, _ = await call.run(Action.LIST, verb, count=lambda both: both[1])
    return answer


def _page(memory: Memory, page: Page) -> Answer:
    """As much of a page as fits; the next one begins behind it."""
    from cofire.views import item_cursor

    lines: list[Answer] = []
    used = 0
    for item in page:
        line = item_line(item)
        used += memory.count_tokens(str(line))
        if lines and used > LIST_TOKENS:
            break
        lines.append(line)
    if len(lines) == len(page):
        return said({"next": page.next}) | {"memories": lines}
    return {"memories": lines, "next": item_cursor(page.items[len(lines) - 1])}


async def update_memory(call: Call, given: Mapping[str, Any]) -> Answer:
    """Change a memory; its former text stays in its history."""
    changes = _but(given, "id")
    if not changes:
        raise InputError("name at least one field to change beside `id`")

    def verb(memory: Memory) -> Item:
        return memory.update(given["id"], **_cleared(changes))

    item = await call.run(Action.UPDATE, verb, count=lambda _: 1)
    return item_line(item) | {"version": item.version}


def _cleared(changes: Mapping[str, Any]) -> dict[str, Any]:
    """An empty title or end clears it."""
    return {name: None if value == "" else value for name, value in changes.items()}


async def forget(call: Call, given: Mapping[str, Any]) -> Answer:
    """Delete for good, with what rests on it."""
    everything = given.get("everything", False)

    def verb(memory: Memory) -> Deletion:
        if everything:
            return memory.forget(
                everything=True, confirm=given.get("confirm"), dry_run=given.get("dry_run", False)
            )
        return memory.forget(given.get("ids"), dry_run=given.get("dry_run", False))

    try:
        deletion = await call.run(Action.FORGET, verb, count=lambda one: one.memories)
    except ConfirmationNeededError as error:
        return {
            "deleted": 0,
            "would_delete": error.count,
            "confirm": error.token,
            "note": (
                "Nothing is deleted yet. Ask the user; if they say yes, call again within ten "
                "minutes with everything=true and this confirm"
            ),
        }
    return said(
        {
            "receipt": deletion.id,
            "would_delete" if deletion.dry_run else "deleted": deletion.memories,
            "derived": deletion.derived,
            "doubtful": list(deletion.doubtful),
            "traces": None if deletion.dry_run else deletion.scrubbed,
        }
    )


async def link_memories(call: Call, given: Mapping[str, Any]) -> Answer:
    """A typed link between two memories."""

    def verb(memory: Memory) -> Link:
        return memory.link(
            given["source"], given["target"], given.get("type", LinkType.RELATED.value),
            strength=given.get("strength", 0.5),
        )  # fmt: skip

    link = await call.run(Action.LINK, verb, count=lambda _: 1)
    return {
        "source": link.source,
        "target": link.target,
        "type": link.type.value,
        "strength": link.strength,
    }


async def strengthen_link(call: Call, given: Mapping[str, Any]) -> Answer:
    """Two memories belong together."""

    def verb(memory: Memory) -> Learned:
        return memory.strengthen(given["a"], given["b"], by=call.caller.name)

    learned = await call.run(Action.STRENGTHEN, verb, count=lambda one: len(one.links))
    strength = max((one.strength for one in learned.links), default=None)
    note = None if learned.counted else "Nothing changed: this was said often enough today"
    return said(
        {
            "counted": learned.counted,
            "strength": None if strength is None else round(strength, 3),
            "note": note,
        }
    )


async def memory_stats(call: Call, given: Mapping[str, Any]) -> Answer:
    """How much is remembered."""
    del given

    def verb(memory: Memory) -> Stats:
        return memory.stats()

    stats = await call.run(Action.STATS, verb, count=lambda one: one.items)
    return {
        "memories": stats.items,
        "links": stats.links,
        "spaces": [_space(space) for space in stats.spaces],
    }


def _space(space: SpaceStats) -> Answer:
    ref = space.space
    return said(
        {
            "project": ref.project,
            "identity": ref.identity,
            "user": ref.user,
            "memories": space.items,
            "links": space.links,
            "by_kind": dict(space.by_kind),
            "waiting_for_vectors": space.pending,
            "embedding_model": space.embedding_model,
            "oldest": None if space.oldest is None else space.oldest.isoformat(),
            "newest": None if space.newest is None else space.newest.isoformat(),
        }
    )


def _but(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


TOOLS_BEFORE = (
    Tool(
        name="remember",
        title="Remember something",
        about=(
            "Store something worth knowing in later conversations: facts about the user, "
            "preferences, decisions with their reasons, plans, corrections. One self-contained "
            "statement per call, with names instead of pronouns. Not for small talk, secrets, or "
            "what is already remembered. Returns the id once it is on disk. Set `untrusted` for "
            "text copied from tools or web pages.\n"
            'Example: {"content": "Ada decided on 3 May to use PostgreSQL for billing, because '
            'SQLite locked up under load.", "tags": ["billing"]}'
        ),
        actions=(Action.REMEMBER,),
        body=remember,
        fields=(
            Field(name="content", required=True, about="The text, kept word for word."),
            TITLE,
            Field(
                name="kind",
                choices=tuple(kind.value for kind in VISIBLE_KINDS),
                about="Default episode; goal and thread stay open until concluded.",
            ),
            Field(name="speaker", about="Who said it."),
            Field(name="time", about="When it was said, ISO 8601. Default now."),
            Field(name="session", about="The conversation it belongs to."),
            TAGGED,
            IMPORTANCE,
            PINNED,
            EXPIRES,
            Field(name="key", about="Your own id: remembering the same key again adds nothing."),
            Field(name="untrusted", type="boolean", about="It comes from a tool or web page."),
            Field(name="project", about="Store it in this shared project instead."),
        ),
        answer={"id": TEXT, "stored": YES_NO, "notes": TEXTS},
    ),
)

TOOLS_AFTER = (
    Tool(
        name="get_memory",
        title="Read one memory",
        about=(
            "Read one memory whole, with its time, tags and strongest links. Call it when recall "
            "or list_memories shows only a part. A long text comes in pages: pass `next_offset` "
            'as `offset`.\nExample: {"id": "<memory id>"}'
        ),
        actions=(Action.GET,),
        body=get_memory,
        fields=(
            ID,
            Field(name="offset", type="integer", least=0, about="Character to go on from."),
        ),
        answer={
            "id": TEXT,
            "kind": TEXT,
            "title": TEXT,
            "text": TEXT,
            "next_offset": WHOLE,
            "characters": WHOLE,
            "time": TEXT,
            "speaker": TEXT,
            "session": TEXT,
            "tags": TEXTS,
            "project": TEXT,
            "importance": WHOLE,
            "pinned": YES_NO,
            "expires": TEXT,
            "archived": TEXT,
            "version": WHOLE,
            "untrusted": YES_NO,
            "links": OBJECTS,
        },
    ),
    Tool(
        name="list_memories",
        title="Browse memories",
        about=(
            "Page through memories by time, newest first. Call it to review or tidy up; to answer "
            "a question use recall. Long texts are cut (`cut` says so). For the following page "
            'pass `next` as `cursor`.\nExample: {"tags": ["billing"], "limit": 20}'
        ),
        actions=(Action.LIST,),
        body=list_memories,
        fields=(
            Field(
                name="limit",
                type="integer",
                least=1,
                most=MOST_PAGE,
                about=f"Memories a page. Default {PAGE}.",
            ),
            Field(name="cursor", about="`next` of the page before."),
            KINDS,
            TAGS,
            Field(name="session", about="Of this conversation."),
            Field(name="speaker", about="Said by them."),
            SINCE,
            UNTIL,
            Field(name="oldest_first", type="boolean"),
            Field(name="archived", type="boolean", about="What is archived instead."),
            TRUSTED,
        ),
        answer={"memories": OBJECTS, "next": TEXT},
    ),
    Tool(
        name="update_memory",
        title="Correct a memory",
        about=(
            "Change a memory that is wrong or out of date; its former text stays in its history. "
            "Only what you pass changes. If both the old and the new are true at their time, "
            'remember the new one instead.\nExample: {"id": "<memory id>", "content": "Ada\'s '
            'desk is in room 14."}'
        ),
        actions=(Action.UPDATE,),
        body=update_memory,
        fields=(
            ID,
            Field(name="content", about="The whole new text."),
            Field(name="title", about='A short heading; "" clears it.', clears=True),
            Field(name="tags", type="array", about="All its tags from now on."),
            IMPORTANCE,
            PINNED,
            Field(name="expires", about='ISO 8601; "" for never.', clears=True),
        ),
        answer={
            "id": TEXT,
            "kind": TEXT,
            "title": TEXT,
            "text": TEXT,
            "tags": TEXTS,
            "project": TEXT,
            "untrusted": YES_NO,
            "cut": TEXT,
            "version": WHOLE,
        },
        destroys=True,
        repeatable=True,
    ),
    Tool(
        name="forget",
        title="Forget memories",
        about=(
            "Delete memories for good, with everything derived from them. Call it only when the "
            "user asks to forget something; find the ids by recall first. `everything` needs a "
            "second call with the `confirm` that the first returns.\n"
            'Example: {"ids": ["<memory id>"]}'
        ),
        actions=(Action.FORGET,),
        body=forget,
        fields=(
            Field(name="ids", type="array", about="Ids of what is to go."),
            Field(name="dry_run", type="boolean", about="Only say what would go."),
            Field(name="everything", type="boolean", about="All memories, in place of ids."),
            Field(name="confirm", about="The token that confirms everything."),
        ),
        answer={
            "receipt": TEXT,
            "deleted": WHOLE,
            "would_delete": WHOLE,
            "derived": WHOLE,
            "doubtful": TEXTS,
            "traces": TEXT,
            "confirm": TEXT,
            "note": TEXT,
        },
        destroys=True,
    ),
    Tool(
        name="link_memories",
        title="Link two memories",
        about=(
            "Say how one memory bears on another. Call it when you notice that one supports, "
            "causes, contradicts or replaces another. One link per pair.\n"
            'Example: {"source": "<newer id>", "target": "<older id>", "type": "supersedes"}'
        ),
        actions=(Action.LINK,),
        body=link_memories,
        fields=(
            Field(name="source", required=True, about="Id it goes from."),
            Field(name="target", required=True, about="Id it goes to."),
            Field(
                name="type",
                choices=(
                    "related",
                    "supports",
                    "causes",
                    "evolves_to",
                    "annotates",
                    "contradicts",
                    "supersedes",
                ),
                about="Default related.",
            ),
            Field(name="strength", type="number", least=0, most=1, about="Default 0.5."),
        ),
        answer={"source": TEXT, "target": TEXT, "type": TEXT, "strength": NUMBER},
    ),
    Tool(
        name="strengthen_link",
        title="Strengthen a link",
        about=(
            "Say that two memories belong together, so that one brings the other to mind. Call it "
            "when you find yourself using both for one thing outside a recall.\n"
            'Example: {"a": "<memory id>", "b": "<memory id>"}'
        ),
        actions=(Action.STRENGTHEN,),
        body=strengthen_link,
        fields=(
            Field(name="a", required=True, about="One memory's id."),
            Field(name="b", required=True, about="The other's."),
        ),
        answer={"counted": YES_NO, "strength": NUMBER, "note": TEXT},
    ),
    Tool(
        name="memory_stats",
        title="Count memories",
        about=(
            "Count what is remembered, by space and kind. Call it when asked how much is "
            "remembered, or to see whether memory works.\nExample: {}"
        ),
        actions=(Action.STATS,),
        body=memory_stats,
        answer={"memories": WHOLE, "links": WHOLE, "spaces": OBJECTS},
    ),
)
