"""A space too large for memory: found by the database's indexes, by these plans, and as well as in
memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest

from cofire.encoding.encoder import Encoder
from cofire.errors import ConfigurationError
from cofire.models.hashing import HashingEmbedder
from cofire.retrieval.engine import Recaller
from cofire.retrieval.profiles import profile_named
from cofire.store import Store, open_store
from cofire.store.large_spaces import NEAREST, Sought, nearest, part, scan
from cofire.store.listing import filter_parameters, filter_shape
from cofire.store.postgres_flavour import PostgresFlavour
from cofire.store.postgres_schema import add_vector_index
from cofire.store.records import SpaceInfo
from cofire.store.session import Compiled, Session, of_space
from cofire.types import Filters, Message, SpaceRef
from postgres_fixtures import make_store
from postgres_server import Address, Database, fresh_database, template_with

SIZE = 3_000
RARE = 100
"""One of so many memories has the tag "rare"."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROFILE = profile_named("cofire")
SUBJECTS = (
    "boat harbour sail anchor rope tide", "bread oven flour yeast crust knife",
    "train station ticket platform delay coach", "guitar string chord song stage tour",
    "garden tomato soil rain shovel seed", "doctor knee bandage clinic nurse pill",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Large:
    """A store with two tenants of the same size; the first's space is `space`."""

    database: Database
    store: Store
    space: SpaceInfo
    other: SpaceInfo
    embedder: HashingEmbedder

    def recaller(self) -> Recaller:
        return Recaller(self.store, self.embedder, self.embedder, 1 << 30)

    def found(self, question: str, filters: Filters = Filters()) -> list[str]:  # noqa: B008
        recaller = self.recaller()
        try:
            recall, _ = recaller.recall(
                (self.space,), question, 10, profile=PROFILE, now=NOW, filters=filters
            )
        finally:
            recaller.close()
        return [item.content for item in recall.items]


@pytest.fixture(scope="module")
def large(postgres_server: Address) -> Iterator[Large]:
    template = template_with(postgres_server, "cofire_template", make_store)
    embedder = HashingEmbedder(384)
    with (
        fresh_database(postgres_server, template=template) as database,
        open_store(database.app_url) as store,
    ):
        first = filled(store, "first", embedder)
        other = filled(store, "other", embedder)
        store.set_indexed(first, True)
        store.set_indexed(other, True)
        yield Large(database=database, store=store, space=first, other=other, embedder=embedder)


def filled(store: Store, tenant: str, embedder: HashingEmbedder, size: int = SIZE) -> SpaceInfo:
    space = store.space(SpaceRef(tenant=tenant, identity="one"), create=True)
    assert space is not None
    space = store.set_model(space, embedder.name, embedder.dimension)
    rng = np.random.default_rng(7)
    texts = []
    for number in range(size):
        words = rng.permutation(SUBJECTS[rng.integers(len(SUBJECTS))].split())[:3]
        texts.append(
            Message(
                content=f"{tenant} note {number}: the {' and the '.join(words)}",
                session=f"session {number // 20}",
                speaker="Nora" if number % 2 else "Juno",
                time=NOW - timedelta(hours=size - number),
                tags=("rare",) if number % RARE == 0 else (),
            )
        )
    encoded = Encoder(embedder).encode(texts, now=NOW, counter=embedder)
    store.append(space, list(encoded.items))
    return store.refreshed(space)


def vector_of(large: Large, text: str) -> bytes:
    return np.asarray(large.embedder.embed_query(text)[0]).astype("<f2").tobytes()


def plan(session: Session, compiled: Compiled, parameters: dict[str, Any]) -> str:
    """What PostgreSQL is going to do with a statement, as it runs it."""
    given = {**compiled.constants, **parameters}
    values = [given[name] for name in compiled.names]
    for place in compiled.vectors:
        values[place] = session.flavour.vector(values[place])
    session.cursor.execute("EXPLAIN " + compiled.sql, values)
    return "\n".join(row[0] for row in session.cursor.fetchall())


@pytest.mark.parametrize("filters", [Filters(), Filters(tags=("rare",), since=NOW - timedelta(5))])
def test_plan_by_the_index_of_vectors(large: Large, filters: Filters) -> None:
    def work(session: Session) -> str:
        scan(session)
        shape = None if filters == Filters() else filter_shape(filters)
        here = {"tenant": large.space.tenant_id, "space": large.space.space_id, "model": 1}
        return plan(
            session,
            Compiled(nearest(384, shape), PostgresFlavour()),
            {
                **here, **filter_parameters(session, filters),
                "asked": vector_of(large, "boats"), "most": NEAREST,
            },
        )  # fmt: skip

    told = large.store._backend.read(of_space(large.space), work)
    scans = [line for line in told.splitlines() if "Index Scan" in line and "vectors" in line]
    assert len(scans) == 1, told  # of one part
    assert "Order By: ((vector)::halfvec(384)" in told, told
    assert "Sort" not in told


def test_a_space_in_memory_is_in_no_index_of_vectors(large: Large) -> None:
    """Its rows are not in the index: a plan for it would have nothing to find."""
    small = filled(large.store, "small", large.embedder, size=50)

    def work(session: Session) -> int:
        return len(part(session, small, Sought(vector=vector_of(large, "boats"))).changes.rows)

    assert large.store._backend.read(of_space(small), work) == 0
    assert not large.store.standing(small).indexed


def test_plan_by_the_index_of_words(large: Large) -> None:
    """The function's own statement, as its owner runs it; as the application, @@ is a filter."""
    with psycopg.connect(large.database.admin_url) as admin:
        body = admin.execute(
            "SELECT prosrc FROM pg_proc WHERE proname = 'search_texts'"
        ).fetchall()[0][0]
    body = body.replace("wanted", "ARRAY['sail']").replace("of_space", "1").replace("most", "50")

    def told(url: str, statement: str) -> str:
        with psycopg.connect(url) as connection:
            connection.execute(f"SET cofire.tenant = '{large.space.tenant_id}'")
            connection.execute("SET search_path = cofire; SET enable_seqscan = off")
            # A few thousand rows are read whole as quickly; not so a million.
            connection.execute("SET cpu_operator_cost = 0.1")
            return "\n".join(r[0] for r in connection.execute("EXPLAIN " + statement).fetchall())

    as_owner = told(large.database.owner_url, body)
    assert as_owner.count("Bitmap Index Scan on items_p") == 1, as_owner
    assert "search_idx" in as_owner
    assert "Subplans Removed" in as_owner
    assert "search_idx" not in told(large.database.app_url, body)


def test_filtered_question_is_answered_in_full_by_the_iterative_scan(large: Large) -> None:
    def found(iterative: bool) -> int:
        filters = Filters(tags=("rare",))

        def work(session: Session) -> int:
            scan(session, iterative=iterative)
            here = {"tenant": large.space.tenant_id, "space": large.space.space_id}
            rows = session.all(
                nearest(384, filter_shape(filters)),
                model=1, asked=vector_of(large, "a boat in the harbour"), most=NEAREST,
                **here, **filter_parameters(session, filters),
            )  # fmt: skip
            return len(rows)

        return large.store._backend.read(of_space(large.space), work)

    assert found(iterative=True) >= 10
    assert found(iterative=False) < 10


def test_filters_hold(large: Large) -> None:
    notes = large.found("the boat in the harbour", Filters(tags=("rare",)))
    numbers = [int(text.split()[2].rstrip(":")) for text in notes]
    assert len(numbers) == 10
    assert all(number % RARE == 0 for number in numbers)


QUESTIONS = [
    "Where is the boat, the anchor and the rope?", "Which flour and yeast for the bread?",
    "What did Nora say about the guitar and the tour?", "note 1234", "the knee and the pill",
]  # fmt: skip


def test_as_in_memory_and_back(large: Large) -> None:
    """Texts are much alike here, so that scores are near each other: seven of ten are the same."""
    by_index = [large.found(question) for question in QUESTIONS]
    large.store.set_indexed(large.space, False)
    try:
        in_memory = [large.found(question) for question in QUESTIONS]
        with psycopg.connect(large.database.admin_url) as admin:
            left = admin.execute(
                "SELECT count(*) FROM cofire.vectors WHERE tenant = %s AND indexed = 1",
                (large.space.tenant_id,),
            ).fetchall()
        assert left == [(0,)]
    finally:
        large.store.set_indexed(large.space, True)
    again = [large.found(question) for question in QUESTIONS]
    # The index is approximate, and built anew by chance (levels of HNSW): nearly the same.
    assert sum(_shared(by_index, again)) >= 8 * len(QUESTIONS), (by_index, again)
    same = _shared(by_index, in_memory)
    assert sum(same) >= 7 * len(QUESTIONS), same


def _shared(some: list[list[str]], others: list[list[str]]) -> list[int]:
    """How many each pair of lists has in common."""
    return [len(set(one) & set(two)) for one, two in zip(some, others, strict=True)]


def test_tenants_never_meet(large: Large) -> None:
    for question in QUESTIONS:
        notes = large.found(question)
        assert notes
        assert all(text.startswith("first ") for text in notes)

    def work(session: Session) -> list[Any]:
        session.cursor.execute(
            "SELECT number FROM cofire.search_texts(ARRAY['sail'], %s, 5000)",
            (large.other.space_id,),
        )
        numbers = [row[0] for row in session.cursor.fetchall()]
        session.cursor.execute("SELECT number FROM cofire.items WHERE content LIKE 'other %%'", ())
        return [len(numbers), session.cursor.fetchall()]

    words, others = large.store._backend.read(of_space(large.space), work)
    assert words > 0  # of the tenant's own: both spaces have the same number
    assert others == []


def test_without_a_tenant_no_words_are_found(large: Large) -> None:
    statement = "SELECT count(*) FROM cofire.search_texts(ARRAY['sail'], 1, 5000)"
    with psycopg.connect(large.database.app_url) as connection:
        assert connection.execute(statement).fetchall() == [(0,)]
        connection.execute(f"SET cofire.tenant = '{large.space.tenant_id}'")
        assert connection.execute(statement).fetchall() != [(0,)]


def test_what_is_new_is_found_at_once(large: Large) -> None:
    message = Message(content="first note 9999999: a zeppelin above the lighthouse", time=NOW)
    encoded = Encoder(large.embedder).encode([message], now=NOW, counter=large.embedder)
    large.store.append(large.space, list(encoded.items))
    assert large.found("the zeppelin")[0] == message.content


def test_a_graph_above_the_budget_sends_its_space_to_the_indexes(large: Large) -> None:
    space = filled(large.store, "grown", large.embedder, size=60)
    recaller = Recaller(large.store, large.embedder, large.embedder, 1 << 30, space_bytes=1_000)
    recaller.graph(space)
    recaller.close()
    assert large.store.standing(space).indexed


def test_only_with_an_index_for_the_dimension(large: Large) -> None:
    embedder = HashingEmbedder(16)
    space = filled(large.store, "sixteen", embedder, size=20)
    with pytest.raises(ConfigurationError, match="--index-dimension 16"):
        large.store.set_indexed(space, True)
    add_vector_index(large.database.owner_url, 16)
    large.store.set_indexed(space, True)
    assert large.store.refreshed(space).indexed


def test_encrypted_spaces_stay_in_memory(large: Large) -> None:
    with open_store(large.database.app_url, master_key=bytes(32), encrypt_new=True) as store:
        space = store.space(SpaceRef(tenant="secret", identity="one"), create=True)
        assert space is not None
        with pytest.raises(ConfigurationError, match="encrypted"):
            store.set_indexed(space, True)
