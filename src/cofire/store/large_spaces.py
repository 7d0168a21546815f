"""Spaces too large to be held in memory, on PostgreSQL: which they are, and the part of one that a
question needs, found by the database's indexes.

Vectors of such a space are in a partial HNSW index (Malkov and Yashunin 2018; pgvector), which is
scanned on until enough rows pass the conditions: a plain WHERE would filter the nearest few
afterwards and, of many spaces in one index, leave hardly any. Words are looked up by the function
`cofire.search_texts`, since behind row-level security the operator @@ is never a condition of an
index. What links to the memories found comes along.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from typing import Any, NamedTuple

from sqlalchemy import (
    and_,
    bindparam,
    case,
    func,
    literal_column,
    select,
    true,
    union_all,
    update,
)

from cofire.errors import ConfigurationError
from cofire.store.columns import HalfVector
from cofire.store.embedding import MOVE_VECTORS
from cofire.store.graph_changes import LINKS_AMONG, ROWS_BY_NUMBER, graph_rows
from cofire.store.listing import (
    FilterShape,
    filter_conditions,
    filter_parameters,
    filter_shape,
)
from cofire.store.reading import ONE, SPACE_STATE
from cofire.store.records import Changes, SpaceInfo
from cofire.store.schema import links, spaces, vectors
from cofire.store.session import Backend, Query, Row, Session, SqlFlavour, of_space
from cofire.store.spaces import missing_space
from cofire.store.transacting import Transacting
from cofire.store.writing import take_turn
from cofire.types import Filters

PORTION = 2_000
"""Numbers whose vectors are put into the index, or taken out, in one transaction: putting one in
takes about a millisecond, and nobody else writes meanwhile."""
NEAREST = 300
"""Memories looked for by their vectors."""
WORDED = 300
"""Memories taken for their words."""
SEEN = 2_000
"""Memories looked at for each word; of more common ones any so many."""
AROUND = 300
"""Memories taken because they are linked to those, by the strongest links first."""
FILTERED = 1_000
"""Memories that pass the filters and are taken, the newest first, where the index found few."""
SCANNED = 60_000
"""Vectors that one scan of the index goes through at most."""

INDEXED, MOVING = 1, 2
NO_FILTERS = Filters()


class Standing(NamedTuple):
    """A space's revision, and whether the database's indexes serve it."""

    revision: int
    indexed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What a part of a space is made for: a vector (float16 bytes), `words` (each the text of a
    tsquery; `terms` are the hashed terms that each stands for), `numbers` that are in it anyway,
    and the filters that memories have to pass."""

    vector: bytes | None = None
    words: tuple[str, ...] = ()
    terms: tuple[tuple[int, ...], ...] = ()
    numbers: tuple[int, ...] = ()
    filters: Filters = NO_FILTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a question needs of a space, and what of the whole space tells how rare a word is: about
    how many `documents` it has, and how many have a hashed term (at most `SEEN`)."""

    changes: Changes
    documents: int
    frequencies: Mapping[int, int]


STANDING = Query(
    lambda _: select(spaces.c.revision, spaces.c.indexed).where(
        spaces.c.tenant == bindparam("tenant"), spaces.c.id == bindparam("space")
    )
)
SET_INDEXED = Query(
    lambda _: (
        update(spaces)
        .where(spaces.c.tenant == bindparam("in_tenant"), spaces.c.id == bindparam("in_space"))
        .values(indexed=bindparam("mark"))
    )
)
LAST_NUMBER = Query(
    lambda _: select(spaces.c.last_number).where(
        spaces.c.tenant == bindparam("tenant"), spaces.c.id == bindparam("space")
    )
)
HAS_INDEX = Query(lambda _: select(func.to_regclass(bindparam("index_name")).is_not(None)))
# ef_search bounds what one round of a scan finds, as many as are wanted. Plans are made for the
# tenant at hand, whose part of the table is then the only one in them, and must not sort the space
# instead of going by the index, however few vectors the planner believes there are.
PREPARE = Query(
    lambda _: select(
        func.set_config("hnsw.iterative_scan", bindparam("iterative"), true()),
        func.set_config("hnsw.ef_search", bindparam("nearest"), true()),
        func.set_config("hnsw.max_scan_tuples", bindparam("scanned"), true()),
        func.set_config("hnsw.scan_mem_multiplier", "8", true()),
        func.set_config("plan_cache_mode", "force_custom_plan", true()),
        func.set_config("enable_sort", "off", true()),
    )
)
PLAN_AS_USUAL = Query(
    lambda _: select(
        func.set_config("plan_cache_mode", "auto", true()),
        func.set_config("enable_sort", "on", true()),
    )
)


def _with_words(_: SqlFlavour) -> Any:
    found = func.cofire.search_texts(
        bindparam("words"), bindparam("space"), bindparam("most")
    ).table_valued("place", "number")
    return select(found.c.place, found.c.number)


WITH_WORDS = Query(_with_words)


@cache
def nearest(dimension: int, wanted: FilterShape | None) -> Query:
    """The numbers of the vectors nearest to `asked` whose memories pass filters (None: there are
    none to pass), in about the order of their distance."""

    def build(flavour: SqlFlavour) -> Any:
        # Written as the index's own expression and condition, which are no parameters.
        expression: Any = literal_column(f"(vectors.vector::public.halfvec({dimension}))")
        conditions = [
            vectors.c.tenant == bindparam("tenant"),
            vectors.c.space == bindparam("space"),
            vectors.c.model == bindparam("model"),
            literal_column("vectors.indexed = 1"),
            literal_column(f"public.vector_dims(vectors.vector) = {dimension}"),
        ]
        if wanted is not None:
            # A look-up for each row that the scan comes by: joined, it would be ordered anew.
            passing = (
                select(true())
                .where(
                    ONE.c.tenant == bindparam("tenant"),
                    ONE.c.space == bindparam("space"),
                    ONE.c.number == vectors.c.number,
                    *_passing(flavour, wanted),
                )
                .correlate(vectors)
                .scalar_subquery()
            )
            conditions.append(func.coalesce(passing, literal_column("false")))
        distance = expression.op("OPERATOR(public.<=>)")(bindparam("asked", type_=HalfVector()))
        return (
            select(vectors.c.number).where(*conditions).order_by(distance).limit(bindparam("most"))
        )

    return Query(build)


@cache
def _filtered(wanted: FilterShape, among: bool) -> Query:
    """Numbers that pass filters: of those given, or the newest of all."""

    def build(flavour: SqlFlavour) -> Any:
        found = select(ONE.c.number).where(
            ONE.c.tenant == bindparam("tenant"),
            ONE.c.space == bindparam("space"),
            *_passing(flavour, wanted),
        )
        if among:
            return found.where(ONE.c.number.in_(flavour.members("numbers")))
        return found.order_by(ONE.c.time.desc()).limit(bindparam("most"))

    return Query(build)


def _passing(flavour: SqlFlavour, wanted: FilterShape) -> list[Any]:
    # Tags and attributes are kept by the number of the whole.
    whole = case((ONE.c.parent != 0, ONE.c.parent), else_=ONE.c.number)
    return [ONE.c.archived.is_(None), *filter_conditions(flavour, wanted, whole)]


def _linked(flavour: SqlFlavour) -> Any:
    here = and_(links.c.tenant == bindparam("tenant"), links.c.space == bindparam("space"))
    numbers = flavour.members("numbers")
    return union_all(
        select(links.c.target, links.c.strength).where(here, links.c.source.in_(numbers)),
        select(links.c.source, links.c.strength).where(here, links.c.target.in_(numbers)),
    )


LINKED = Query(_linked)


def standing(backend: Backend, space: SpaceInfo) -> Standing:
    """Raises NotFoundError."""
    rows = backend.glance(of_space(space), STANDING, tenant=space.tenant_id, space=space.space_id)
    if not rows:
        raise missing_space(space)
    return Standing(rows[0][0], rows[0][1] == INDEXED)


def set_indexed(backend: Backend, space: SpaceInfo, indexed: bool) -> None:
    """Has the database's indexes serve a space, or no longer; in many transactions, and to be
    called again if it was interrupted. Until it is done the space is held in memory.

    Raises ConfigurationError for an encrypted space (an index of vectors would tell of its texts)
    and where the database has no index for the vectors' dimension; NotFoundError.
    """
    if indexed:
        _require_index(backend, space)
    here = {"tenant": space.tenant_id, "space": space.space_id}
    there = {"in_tenant": space.tenant_id, "in_space": space.space_id}
    scope = of_space(space)

    def mark(session: Session, value: int) -> None:
        take_turn(session, space)
        session.run(SET_INDEXED, mark=value, **there)

    # What is written from now on is written as it is going to be.
    backend.write(scope, lambda session: mark(session, MOVING if indexed else 0))
    last = backend.glance(scope, LAST_NUMBER, **here)[0][0]
    for after in range(0, last, PORTION):
        upto = min(last, after + PORTION)
        backend.write(
            scope,
            lambda session, after=after, upto=upto: session.run(  # type: ignore[misc]
                MOVE_VECTORS, mark=int(indexed), after=after, last=upto, **there
            ),
        )
    if indexed:
        backend.write(scope, lambda session: mark(session, INDEXED))


def _require_index(backend: Backend, space: SpaceInfo) -> None:
    if not backend.shared:
        raise ConfigurationError(
            f"{backend.description}: SQLite has no index of vectors; spaces are held in memory"
        )
    if space.encrypted:
        raise ConfigurationError(
            f"{space.ref}: this space is encrypted, and an index of its vectors would tell of its "
            "texts; it is held in memory"
        )
    name = f"cofire.ix_vectors_{space.dimension}"
    scope = of_space(space)
    if space.dimension and not backend.glance(scope, HAS_INDEX, index_name=name)[0][0]:
        raise ConfigurationError(
            f"{space.ref}: this database has no index for vectors of {space.dimension} dimensions; "
            f"have its owner run `cofire db upgrade URL --index-dimension {space.dimension}`"
        )


def part(session: Session, space: SpaceInfo, sought: Sought, *, iterative: bool = True) -> Part:
    """The rows of a space that a question needs and the links among them, as if that were all of
    it. `iterative` False (for tests): as without pgvector's iterative scan."""
    here = {"tenant": space.tenant_id, "space": space.space_id}
    state = session.one(SPACE_STATE, **here)
    if state is None:
        raise missing_space(space)
    revision, _, model = state
    shape = None if sought.filters == NO_FILTERS else filter_shape(sought.filters)
    passing = {} if shape is None else filter_parameters(session, sought.filters)
    seeds = list(sought.numbers)
    frequencies: dict[int, int] = {}
    if sought.vector is not None and model is not None:
        scan(session, iterative=iterative)
        query = nearest(len(sought.vector) // 2, shape)
        rows = session.all(query, model=model, asked=sought.vector, most=NEAREST, **here, **passing)
        session.all(PLAN_AS_USUAL)
        seeds += [row[0] for row in rows]
    if sought.words:
        by_word = _worded(session, space, sought.words)
        frequencies = _frequencies(by_word, sought.terms)
        found = _rarest_first(by_word)
        if shape is not None and found:
            query = _filtered(shape, among=True)
            kept = {row[0] for row in session.all(query, numbers=found, **here, **passing)}
            found = [number for number in found if number in kept]
        seeds += found[:WORDED]
    if shape is not None and iterative and len(set(seeds)) < NEAREST:
        query = _filtered(shape, among=False)
        seeds += [row[0] for row in session.all(query, most=FILTERED, **here, **passing)]
    numbers = dict.fromkeys(seeds)
    if sought.vector is not None or sought.words:
        numbers.update(dict.fromkeys(_around(session, here, list(numbers))))
    return Part(
        changes=_loaded(session, here, revision, model, list(numbers)),
        documents=session.all(LAST_NUMBER, **here)[0][0],
        frequencies=frequencies,
    )


def scan(session: Session, *, iterative: bool = True) -> None:
    """Sets for this transaction how the index of vectors is scanned."""
    session.all(
        PREPARE,
        iterative="relaxed_order" if iterative else "off",
        nearest=str(NEAREST),
        scanned=str(SCANNED),
    )


def _worded(session: Session, space: SpaceInfo, words: Sequence[str]) -> dict[int, list[int]]:
    """Numbers of what has a word, by the word's place, counted from 1."""
    rows = session.all(WITH_WORDS, words=list(words), space=space.space_id, most=SEEN)
    by_word: dict[int, list[int]] = defaultdict(list)
    for place, number in rows:
        by_word[place].append(number)
    return by_word


def _frequencies(
    by_word: Mapping[int, Sequence[int]], terms: Sequence[Sequence[int]]
) -> dict[int, int]:
    found: dict[int, int] = {}
    for place, hashes in enumerate(terms, 1):
        for term in hashes:
            found[term] = max(found.get(term, 0), len(by_word.get(place, ())))
    return found


def _rarest_first(by_word: Mapping[int, Sequence[int]]) -> list[int]:
    """Numbers of what has some of the words, those with many and rare ones first."""
    weights: dict[int, float] = defaultdict(float)
    for found in by_word.values():
        rarity = log(1.0 + SEEN / len(found))
        for number in found:
            weights[number] += rarity
    return sorted(weights, key=lambda number: (-weights[number], number))


def _around(session: Session, here: dict[str, int], seeds: list[int]) -> list[int]:
    """What is linked to the seeds and is none, by the strongest links first."""
    if not seeds:
        return []
    best: dict[int, float] = {}
    known = set(seeds)
    for number, strength in session.all(LINKED, numbers=seeds, **here):
        if number not in known:
            best[number] = max(strength, best.get(number, 0.0))
    return sorted(best, key=lambda number: (-best[number], number))[:AROUND]


def _loaded(
    session: Session, here: dict[str, int], revision: int, model: int | None, numbers: list[int]
) -> Changes:
    rows: dict[int, Row] = {}
    missing = numbers
    while missing:
        for row in graph_rows(session.all(ROWS_BY_NUMBER, model=model, numbers=missing, **here)):
            rows[row[0]] = row
        # The wholes that segments are of.
        missing = [
            number
            for number in {row[3] for row in rows.values() if row[3]}
            if number not in rows and number not in missing
        ]
    inside = sorted(rows)
    linked = session.all(LINKS_AMONG, numbers=inside, **here) if inside else []
    return Changes(
        revision=revision,
        rebuild=True,
        rows=[rows[number] for number in inside],
        links=sorted(row for row in linked if row[1] in rows),
        removed_items=[],
        removed_links=[],
    )


class LargeSpaceVerbs(Transacting):
    """The verbs of `Store` about spaces too large for memory."""

    def standing(self, space: SpaceInfo) -> Standing:
        """The space's revision now, and whether the database's indexes serve it. Raises
        NotFoundError."""
        return standing(self._backend, space)

    def set_indexed(self, space: SpaceInfo, indexed: bool) -> None:
        """Has the database's indexes serve a space, or no longer; see
        `large_spaces.set_indexed`."""
        set_indexed(self._backend, space, indexed)

    def part(self, space: SpaceInfo, sought: Sought) -> Part:
        """What a question needs of a space that indexes serve; see `large_spaces.part`."""
        return self._read(part, space, sought)
