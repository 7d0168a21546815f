"""Whatever is stored comes back from our own format; whatever is said comes back from JSONL."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cofire.errors import FormatError
from cofire.interchange import messages, native
from cofire.interchange import native_records as records
from cofire.interchange.native_records import (
    StoredItem,
    StoredSegment,
    StoredSpace,
    StoredStep,
)
from cofire.interchange.report import Problem
from cofire.store.records import (
    KIND_CODES,
    LINK_CODES,
    STATES,
    DerivedFields,
    EventRecord,
    ItemRow,
    LinkRow,
    RecallHit,
    RecallRecord,
    SourceRow,
    VersionRow,
)
from cofire.types import Message, SpaceRef, to_micros

FIRST = to_micros(datetime(1, 1, 1, tzinfo=UTC))
LAST = to_micros(datetime(9999, 12, 31, tzinfo=UTC))

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
)
moments = st.integers(FIRST, LAST)
naturals = st.integers(0, 2**63 - 1)
numbers = st.floats(allow_nan=False, allow_infinity=False)
uids = st.binary(min_size=16, max_size=16)
vectors = st.none() | st.binary(max_size=40).map(lambda raw: raw[: len(raw) // 2 * 2])
scalars = st.none() | st.booleans() | st.integers() | numbers | texts
metadata = st.dictionaries(
    texts,
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner)
    ),
    max_size=3,
)


told_times = st.lists(st.tuples(texts, moments, moments), max_size=2)


@st.composite
def items(draw: st.DrawFn) -> StoredItem:
    content, uid = draw(names.filter(str.strip)), draw(uids)
    cuts = sorted(draw(st.lists(st.integers(0, len(content)), max_size=4)))
    segments = tuple(
        StoredSegment(
            number=draw(naturals),
            uid=draw(uids),
            start=start,
            end=end,
            tokens=draw(naturals),
            pending=draw(st.booleans()),
            vector=draw(vectors),
        )
        for start, end in itertools.pairwise(cuts)
    )
    maybe_text, maybe_moment = st.none() | names, st.none() | moments
    row = ItemRow(
        number=draw(naturals),
        uid=uid,
        parent=0,
        whole=uid,
        segment=0,
        segments=len(segments),
        start=0,
        end=len(content),
        kind=draw(st.sampled_from(sorted(KIND_CODES))),
        content=content,
        title=draw(maybe_text),
        speaker=draw(maybe_text),
        role=draw(maybe_text),
        session=draw(maybe_text),
        time=draw(moments),
        offset=draw(st.none() | st.integers(-1439, 1439)),
        recorded=draw(moments),
        updated=draw(moments),
        expires=draw(maybe_moment),
        archived=draw(maybe_moment),
        tags=tuple(draw(st.lists(names, max_size=3))),
        importance=draw(st.integers(1, 10)),
        pinned=draw(st.booleans()),
        metadata=draw(metadata),
        key=draw(maybe_text),
        language=draw(maybe_text),
        keywords=tuple(draw(st.lists(texts, max_size=3))),
        tokens=draw(naturals),
        event_times=tuple((*told, 0, len(content)) for told in draw(told_times)),
        access_count=draw(naturals),
        last_accessed=draw(maybe_moment),
        version=draw(naturals),
        pending=draw(st.booleans()),
        confidence=draw(st.none() | st.floats(0, 1)),
        valid_from=draw(maybe_moment),
        valid_to=draw(maybe_moment),
        untrusted=draw(st.booleans()),
        revision=0,
    )
    return StoredItem(row=row, vector=draw(vectors), segments=segments)


links = st.builds(
    LinkRow,
    source=naturals,
    target=naturals,
    source_uid=st.just(b""),
    target_uid=st.just(b""),
    type=st.sampled_from(sorted(LINK_CODES)),
    strength=st.floats(0, 1),
    coactivations=naturals,
    last_coactivated=st.none() | moments,
    created=moments,
    revision=st.just(0),
    rejections=naturals,
    tick=naturals,
    quota_day=st.none() | st.integers(-(2**40), 2**40),
    quota=st.lists(st.tuples(names, numbers), max_size=3).map(tuple),
)
versions = st.builds(
    VersionRow,
    number=naturals,
    version=naturals,
    content=names,
    title=st.none() | names,
    replaced=moments,
)
derived = st.integers(0, 2**40).flatmap(
    lambda number: st.builds(
        DerivedFields,
        number=st.just(number),
        maker=names,
        prompt=st.none() | names,
        state=st.sampled_from(STATES),
        subject=texts,
        slot=st.none() | texts,
        value=st.none() | texts,
        single=st.booleans(),
        reasons=st.lists(texts, max_size=2).map(tuple),
        closed=st.none() | moments,
        sources=st.lists(
            st.builds(
                SourceRow,
                number=st.just(number),
                source=naturals,
                version=naturals,
                start=naturals,
                end=naturals,
            ),
            max_size=3,
        ).map(tuple),
    )
)
steps = st.builds(
    StoredStep,
    name=names,
    time=moments,
    period=st.integers(-1, 2**40),
    first=naturals,
    last=naturals,
    events=naturals,
)
recalls = st.builds(
    RecallRecord,
    uid=uids,
    query=texts,
    time=moments,
    profile=texts,
    principal=st.none() | texts,
    hits=st.lists(
        st.builds(
            RecallHit,
            number=naturals,
            position=naturals,
            score=numbers,
            linked=st.booleans(),
            via=naturals,
        ),
        max_size=3,
    ).map(tuple),
)
events = st.builds(
    EventRecord,
    seq=naturals,
    recall=st.none() | uids,
    type=texts,
    items=st.lists(st.tuples(naturals, numbers), max_size=3).map(tuple),
    outcome=st.none() | numbers,
    signal=st.none() | texts,
    principal=st.none() | texts,
    time=moments,
    question=st.none() | st.integers(0, 2**64 - 1),
    cue=st.none() | naturals,
    trusted=st.booleans(),
    via=st.lists(st.tuples(naturals, naturals), max_size=3).map(tuple),
)
spaces = st.builds(
    StoredSpace,
    ref=st.builds(
        SpaceRef,
        tenant=texts,
        identity=st.none() | texts,
        user=st.none() | texts,
        project=st.none() | texts,
    ),
    model=st.none() | texts,
    dimension=st.none() | naturals,
    settings=metadata,
)


def through_json(value: dict[str, Any]) -> Any:
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return records.record_from_json(json.loads(line.encode("utf-8")))


@given(items())
def test_items_come_back(item: StoredItem) -> None:
    assert through_json(records.item_to_json(item)) == item


@given(derived, steps)
def test_what_consolidation_made_comes_back(row: DerivedFields, step: StoredStep) -> None:
    assert through_json(records.derived_to_json(row)) == row
    assert through_json(records.step_to_json(step)) == step


@given(links, versions, recalls, events, spaces)
def test_other_records_come_back(
    link: LinkRow,
    version: VersionRow,
    recall: RecallRecord,
    event: EventRecord,
    space: StoredSpace,
) -> None:
    assert through_json(records.link_to_json(link)) == link
    assert through_json(records.version_to_json(version)) == version
    assert through_json(records.recall_to_json(recall)) == recall
    assert through_json(records.event_to_json(event)) == event
    assert through_json(records.space_to_json(space)) == space


@settings(max_examples=50)
@given(
    st.lists(items(), max_size=4, unique_by=lambda item: item.row.uid),
    st.binary(max_size=6),
    st.data(),
)
def test_a_changed_byte_never_passes(
    stored: list[StoredItem], noise: bytes, data: st.DataObject
) -> None:
    stream = io.BytesIO()
    writer = native.Writer(stream, created=datetime(2026, 1, 1, tzinfo=UTC))
    ref = SpaceRef(identity="a")
    writer.space(StoredSpace(ref=ref, model=None, dimension=None, settings={}))
    for number, item in enumerate(stored, start=1):
        writer.item(StoredItem(row=item.row._replace(number=number, segments=0)))
    writer.close()
    whole = stream.getvalue()
    read = list(native.read_stream(io.BytesIO(whole), "x"))
    assert len(read) == len(stored) + 1
    at = data.draw(st.integers(0, len(whole)))
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    with contextlib.suppress(FormatError):
        assert list(native.read_stream(io.BytesIO(damaged), "x")) == read


message_fields = st.fixed_dictionaries(
    {"content": texts.filter(str.strip)},
    optional={
        "speaker": texts,
        "session": texts,
        "time": st.integers(10**9, 4 * 10**9),
        "tags": st.lists(texts.filter(bool), max_size=2),
        "metadata": metadata,
        "extra": scalars,
    },
)


@given(st.lists(message_fields, max_size=5), st.sampled_from([b"\n", b"\r\n", b"\n\n", b""]))
def test_messages_come_back_verbatim_whatever_separates_them(
    rows: list[dict[str, Any]], separator: bytes
) -> None:
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in rows]
    data = separator.join(lines)
    entries = list(messages.read_stream(io.BytesIO(data), "x"))
    again = list(messages.read_stream(io.BytesIO(data), "x"))
    found = [entry for entry in entries if isinstance(entry, Message)]
    assert [message.content for message in found] == [row["content"] for row in rows]
    assert [message.time for message in found] == [row.get("time") for row in rows]
    assert entries == again
    distinct = {(m.key, m.content, m.speaker, m.session, m.time) for m in found}
    assert len({key for key, *_ in distinct}) == len(distinct)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        for entry in messages.read_stream(io.BytesIO(data), "x"):
            assert isinstance(entry, Message | Problem)
