"""The spaces a memory sees: the agent's own and its projects', and where in them a memory is.

Another process may forget a space whole, which leaves an empty one under a new number; whoever had
it open finds that out at the next call and goes on with the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from cofire import views
from cofire.errors import (
    ConfigurationError,
    EmbeddingError,
    EmbeddingMismatchError,
    InputError,
    NotFoundError,
)
from cofire.models import Embedder
from cofire.store import Store
from cofire.store.records import SpaceInfo
from cofire.types import SpaceRef, to_micros

R = TypeVar("R")


class VisibleSpaces:
    """The spaces of one `Memory`. `embedder` None: vectors are off, any model is accepted.
    `forgotten` is called with each space that is no longer what it was."""

    def __init__(
        self,
        store: Store,
        own: SpaceInfo,
        projects: Mapping[str, SpaceInfo],
        embedder: Embedder | None,
        forgotten: Callable[[SpaceInfo], None],
    ) -> None:
        self._store = store
        self.own = own
        self.projects = dict(projects)
        self._embedder = embedder
        self._forgotten = forgotten

    def all(self) -> tuple[SpaceInfo, ...]:
        """The own space first."""
        return (self.own, *self.projects.values())

    def target(self, project: str | None) -> SpaceInfo:
        """Where a write goes. Raises InputError."""
        if project is None:
            return self.own
        try:
            return self.projects[project]
        except KeyError:
            raise InputError(
                f"this memory was not opened with the project {project!r}; add it to `projects`"
            ) from None

    def with_model(self, space: SpaceInfo) -> SpaceInfo:
        """The space, its embedding model fixed by the first write; not yet where the model cannot
        even tell its dimension."""
        if space.model is not None or self._embedder is None:
            return space
        try:
            name, dimension = self._embedder.name, self._embedder.dimension
        except EmbeddingMismatchError:
            raise
        except (EmbeddingError, ConfigurationError):  # told by the encoder, which met it before
            return space
        fixed = self._store.set_model(space, name, dimension)
        self.put(fixed)
        return fixed

    def put(self, space: SpaceInfo) -> None:
        """Take a newer picture of a space in place of the one held."""
        if space.ref == self.own.ref:
            self.own = space
        for name, known in self.projects.items():
            if known.ref == space.ref:
                self.projects[name] = space

    def use(self, embedder: Embedder) -> None:
        """From now on another model; the pictures held are read anew."""
        self._embedder = embedder
        for space in self.all():
            self.put(self._store.refreshed(space))

    def locate(self, id: str) -> tuple[SpaceInfo, int]:
        """In which space, and as which number, a memory is. Raises NotFoundError, InputError."""
        uid = views.read_id(id)
        found = self._store.locate(self.all(), uid)
        if found is None and self.renew():
            found = self._store.locate(self.all(), uid)
        if found is None:
            raise missing(id)
        return found

    def numbered(self, number: int) -> tuple[SpaceInfo, int]:
        """In which space, and as which number in it, the memory of a 64-bit number is. Raises
        NotFoundError."""
        self.renew()
        for space in self.all():
            within = number - views.public_number(space, 0)
            if 0 < within < 1 << 32:
                return space, within
        raise missing(number)

    def end(self, id: str) -> tuple[SpaceInfo, int]:
        """As `locate`, but what is no id at all is told apart from no other missing memory."""
        try:
            return self.locate(id)
        except InputError as exc:
            raise missing(id) from exc

    def renew(self) -> bool:
        """Take the spaces that another process forgot whole as they are now: empty, under a new
        number. Returns whether there were any. Raises EmbeddingMismatchError."""
        now = to_micros(datetime.now(UTC))
        former = self.all()
        spaces = tuple(open_space(self._store, space.ref, now) for space in former)
        if [space.space_id for space in spaces] == [space.space_id for space in former]:
            return False
        for space in former:
            self._forgotten(space)
        for space in spaces:
            self.require_model(space, "this store")
            self.put(space)
        return True

    def reopen(self, where: str) -> None:
        """Everything may have changed (a restore). Raises EmbeddingMismatchError."""
        now = to_micros(datetime.now(UTC))
        shared = self._store.shared
        for space in self._store.spaces(self.own.ref.tenant if shared else None):
            self._forgotten(space)
        for space in self.all():
            self._forgotten(space)
            self.put(open_space(self._store, space.ref, now))
        for space in self.all():
            self.require_model(space, where)

    def lasting(self, call: Callable[[], R]) -> R:
        """What `call` gives; called once more where a space it used was forgotten meanwhile."""
        try:
            return call()
        except NotFoundError:
            if not self.renew():
                raise
            return call()

    def require_model(self, space: SpaceInfo, where: object) -> None:
        """Raises EmbeddingMismatchError where vectors are on and the space's are another's."""
        if self._embedder is not None:
            require_model(space, self._embedder, where)


def open_space(store: Store, ref: SpaceRef, now: int) -> SpaceInfo:
    """A space by name, made if need be."""
    space = store.space(ref, create=True, now=now)
    if space is None:  # it is made; said for the type checker's sake
        raise NotFoundError(f"there is no space {ref}")
    return space


def require_model(space: SpaceInfo, model: Embedder, where: object) -> None:
    """Raises EmbeddingMismatchError where the space's vectors are another model's. An embedder
    that cannot be reached is no reason to refuse what it made."""
    if space.model is None:
        return
    try:
        name = model.name
    except (EmbeddingError, ConfigurationError) as exc:
        # It has to ask for its dimension because the space's is not of the name it would have.
        now = f"another one that cannot even tell its dimension: {exc}"
    else:
        dimension = _dimension(model, space)
        if (space.model, space.dimension) == (name, dimension):
            return
        now = f"{name} ({dimension})"
    raise EmbeddingMismatchError(
        f"the vectors of {space.ref} in {where} were made by {space.model} "
        f"({space.dimension} dimensions), but the embedder now is {now}. Run `cofire reembed` to "
        "make them anew (nothing is deleted until it is complete), set the former embedder, or "
        "open with vectors=False to search by words meanwhile"
    )


def _dimension(model: Embedder, space: SpaceInfo) -> int | None:
    """The model's, or the space's while the model cannot tell: it will be seen when it embeds."""
    try:
        return model.dimension
    except (EmbeddingError, ConfigurationError):
        return space.dimension


def missing(id: str | int) -> NotFoundError:
    """The one error for every memory that is not here, whatever the reason."""
    return NotFoundError(f"there is no memory {id} here; `list` shows what there is")


def no_link(source: str, target: str) -> NotFoundError:
    """The one error for every link that is not here."""
    return NotFoundError(f"there is no link from {source} to {target} here")
