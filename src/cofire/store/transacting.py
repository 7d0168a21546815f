"""What the store's verbs stand on: a function of a session and a space, run as one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from cofire.store.records import SpaceInfo
from cofire.store.session import Backend, Scope, Session, of_space
from cofire.store.spaces import meet_encrypted

P = ParamSpec("P")
T = TypeVar("T")


class Transacting:
    """Runs verbs on a back end. A verb may be run more than once (see `Backend.write`): it leaves
    its arguments as they were, and what it is given can be iterated again."""

    _backend: Backend

    def _scope(self, space: SpaceInfo) -> Scope:
        """The scope of what is about one space, of which this store then knows the key."""
        vault = self._backend.vault
        if space.encrypted and (space.tenant_id, space.space_id) not in vault.keys:
            # Another store said that it is: tenants are not looked through when one is opened.
            self._backend.read(Scope(tenant=space.tenant_id), meet_encrypted)
        return of_space(space)

    def _read(
        self,
        verb: Callable[Concatenate[Session, SpaceInfo, P], T],
        space: SpaceInfo,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """A verb that looks at one space, within one consistent snapshot."""
        return self._backend.read(
            self._scope(space), lambda session: verb(session, space, *args, **kwargs)
        )

    def _write(
        self,
        verb: Callable[Concatenate[Session, SpaceInfo, P], T],
        space: SpaceInfo,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """A verb that changes one space, as its only writer."""
        return self._backend.write(
            self._scope(space), lambda session: verb(session, space, *args, **kwargs)
        )
