"""Values that the OpenAPI document shows: one conversation about a trip, told in all routes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cofire import answers as answered
from cofire import types as public
from cofire.interchange.report import Action, ImportReport, Problem
from cofire.plain import answer_shape, hydration_shape, plain, recall_shape, report_shape

A = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"
B = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a002"
C = "019d0b7c-1f2e-7a61-8f53-2c9b6de1a003"
_SAID = datetime(2026, 5, 8, 17, 30, tzinfo=UTC)
_LATER = datetime(2026, 5, 9, 6, 0, tzinfo=UTC)
_SPACE = public.SpaceRef(identity="default")

ITEM = public.Item(
    id=A,
    number=1 << 32 | 7,
    space=_SPACE,
    kind=public.Kind.EPISODE,
    content="The ferry to Norderney leaves at 9:15 from Norddeich.",
    speaker="Ada",
    session="trip",
    time=_SAID,
    offset=120,
    recorded=_SAID,
    updated=_SAID,
    tags=("travel",),
    language="en",
    keywords=("ferry", "norderney", "norddeich"),
    tokens=14,
)
THREAD_ITEM = public.Item(
    id=C,
    number=1 << 32 | 9,
    space=_SPACE,
    kind=public.Kind.THREAD,
    content="find a hotel",
    time=_SAID,
    recorded=_SAID,
    updated=_LATER,
    tokens=3,
)
RECEIPT = public.Receipt(ids=(A,), created=(True,), revision=8)
VERSION = public.Version(
    version=1, content="The ferry leaves at 9:00.", title=None, replaced=_LATER
)
LINK = public.Link(source=A, target=B, type=public.LinkType.SUPPORTS, strength=0.5)
STRENGTH = public.Strength(a=A, b=B, strength=0.1, coactivations=1)
LEARNED = public.Learned(counted=True, links=(STRENGTH,))
EVIDENCE = public.Evidence(
    sequence=1,
    time=_LATER,
    type="feedback",
    signal="used",
    by="assistant",
    outcome=1.0,
    recall=B,
    question="When does the ferry leave?",
    movement=0.1,
    strength=0.1,
)
PROPOSAL = public.Proposal(a=A, b=B, rejections=3)
_HIT = public.Recalled(id=A, content=ITEM.content, score=0.82, item=ITEM)
_RECALL = public.Recall(
    id=B,
    query="When does the ferry leave?",
    items=(_HIT,),
    profile="cofire",
    tokens=42,
    confidence=0.93,
)
RECALL: dict[str, Any] = recall_shape(_RECALL) | {"text": _RECALL.text}
ANSWER: dict[str, Any] = answer_shape(
    answered.Answer(
        question="When does the ferry leave?",
        text="At 9:15, from Norddeich.",
        marked="At 9:15, from Norddeich [1].",
        citations=(answered.Citation(id=A, text=ITEM.content, time=_SAID, label=1, speaker="Ada"),),
        confidence=0.93,
        model="openai:gpt-4o-mini",
        prompt="answer@1",
        usage=answered.Usage(
            context_tokens=24,
            input_tokens=310,
            output_tokens=12,
            cost=0.0001,
            calls=1,
            recall_seconds=0.004,
            model_seconds=0.8,
        ),
        learned=LEARNED,
        recall=_RECALL,
        context=answered.Context(),
    )
)
ANSWER_CONTEXT = {
    "recall": B,
    "confidence": 0.93,
    "tokens": 24,
    "entries": [
        {
            "label": 1,
            "id": A,
            "section": "said",
            "time": "2026-05-08T17:30:00Z",
            "speaker": "Ada",
            "untrusted": False,
        }
    ],
}
CANDIDATES = {"ids": [A], "terms": ["dense"], "values": [[0.61]]}
_HYDRATION = public.Hydration(
    id=B,
    cue="Planning the trip",
    entries=(
        public.Hydrated(
            id=C,
            content="find a hotel",
            section="working",
            why="an open thread",
            header="thread, open since 8 May 2026:",
            item=THREAD_ITEM,
        ),
    ),
    tokens=31,
    seed=7,
)
HYDRATION = hydration_shape(_HYDRATION)
THREAD = public.Thread(
    id=C,
    kind=public.Kind.THREAD,
    content="find a hotel",
    state=public.ThreadState.OPENED,
    opened=_SAID,
    touched=_SAID,
    note=None,
    history=(public.ThreadChange(state=public.ThreadState.OPENED, time=_SAID),),
    item=THREAD_ITEM,
)
CHECKPOINT = public.Checkpoint(
    id=B, time=_LATER, session="trip", summary="The ferry is booked.", open=(THREAD,)
)
RECORD = public.SemanticRecord(
    id=B,
    content="Ada takes the ferry to Norderney.",
    item=ITEM,
    evidence=(public.Quoted(id=A, text=ITEM.content, time=_SAID, speaker="Ada"),),
    subject="Ada",
    valid_from=_SAID,
    confidence=0.5,
)
SHAPE = public.Shape(
    id=C, content="About ferries and islands.", count=12, since=_SAID, until=_LATER
)
REPORT = report_shape(
    public.SleepReport(
        space=_SPACE,
        started=_LATER,
        seconds=0.4,
        steps=(public.StepReport(name="strengthen", counts={"links": 3}, seconds=0.1),),
    )
)
DELETION = public.Deletion(
    id=B, time=_LATER, spaces=(_SPACE,), ids=(A,), memories=1, links=2, scrubbed="scrubbed"
)
VERIFICATION = public.Verification(id=B, time=_LATER, found={}, scrubbed="scrubbed")
STATS = {
    "spaces": [
        plain(
            public.SpaceStats(
                space=_SPACE,
                items=2,
                segments=0,
                links=1,
                by_kind={"episode": 2},
                pending=0,
                revision=8,
                embedding_model="minilm",
                dimension=384,
                oldest=_SAID,
                newest=_LATER,
                learning_rule="cofire",
            )
        )
    ],
    "items": 2,
    "links": 1,
}
KEY = {
    "id": A,
    "name": "assistant",
    "tenant": "default",
    "state": "good",
    "identities": ["default"],
    "users": None,
    "projects": [],
    "scopes": ["read", "write"],
    "created": "2026-05-08T17:30:00Z",
    "expires": None,
    "revoked": None,
    "last_used": None,
}
AUDIT = {
    "id": C,
    "time": "2026-05-09T06:00:00Z",
    "surface": "rest",
    "action": "remember",
    "outcome": "ok",
    "principal": "assistant",
    "key": A,
    "code": None,
    "count": 1,
    "request": "7f3c",
}
JOBS = {
    "due": 1, "waiting": 0, "dead": 0, "running": 0, "oldest_seconds": 12.5, "given_up": [],
}  # fmt: skip
ME = {
    "name": "assistant",
    "tenant": "default",
    "identity": "default",
    "user": None,
    "identities": ["default"],
    "users": None,
    "projects": [],
    "scopes": ["read", "write"],
    "key": A,
    "identity_number": 5_577_006_791_947_779_410,
}
IMPORTED = ImportReport(
    source="body",
    read=3,
    imported=2,
    dropped=1,
    problems=[Problem(where="body, line 2", reason="it is no JSON", action=Action.DROPPED)],
)


def one_page(item: Any) -> dict[str, Any]:
    """A page with this on it."""
    return {"items": [plain(item)], "next": None}
