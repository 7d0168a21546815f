"""Who asks, what they may do, and whose memories they may name."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from cofire.errors import ForbiddenError, InputError


class Scope(enum.StrEnum):
    """What a key lets its holder do."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"
    ADMIN = "admin"


EVERYTHING = frozenset(Scope)

DEFAULT_IDENTITY = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Whose memories a request names, as it came; None and () where it names none."""

    identity: str | None = None
    user: str | None = None
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Whose memories a request is about: one own space and the projects beside it."""

    tenant: str
    identity: str
    user: str | None
    projects: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks. `name` is the principal of feedback and of the audit trail. `identities`, `users`
    and `projects` are those that they may name (None: any; the first identity is meant where a
    request names none). A caller whose `users` are given may not ask without one of them. `key` is
    the id of the API key (16 bytes), None for tokens of an issuer and for the local caller."""

    name: str
    tenant: str
    identities: tuple[str, ...] | None
    users: tuple[str, ...] | None
    projects: tuple[str, ...] | None
    scopes: frozenset[Scope]
    key: bytes | None = None

    def require(self, scope: Scope) -> None:
        """Raises ForbiddenError."""
        if scope not in self.scopes:
            has = ", ".join(sorted(self.scopes)) or "none"
            raise ForbiddenError(
                f"this needs the scope {scope.value!r}; the key of {self.name!r} has: {has}"
            )

    def place(self, where: Where) -> Place:
        """The memories that `where` names, if the caller may name them. Never widens: what is
        missing means the caller's own, what is empty is an error. Raises ForbiddenError,
        InputError."""
        return Place(
            tenant=self.tenant,
            identity=self._identity(where.identity),
            user=self._user(where.user),
            projects=tuple(self._project(name) for name in dict.fromkeys(where.projects)),
        )

    def _identity(self, named: str | None) -> str:
        if named is None:
            if self.identities is None:
                return DEFAULT_IDENTITY
            if not self.identities:
                raise ForbiddenError(f"the key of {self.name!r} has no identity")
            return self.identities[0]
        return self._permitted("identity", named, self.identities)

    def _user(self, named: str | None) -> str | None:
        if named is not None:
            return self._permitted("user", named, self.users)
        if self.users is None:
            return None
        if len(self.users) == 1:
            return self.users[0]
        raise ForbiddenError(f"the key of {self.name!r} is for certain users only; name one")

    def _project(self, named: str) -> str:
        return self._permitted("project", named, self.projects)

    def _permitted(self, what: str, named: str, among: Sequence[str] | None) -> str:
        if not named.strip():
            raise InputError(f"{what} must not be empty; leave it out where you mean your own")
        if among is not None and named not in among:
            raise ForbiddenError(f"the key of {self.name!r} is not for the {what} {named!r}")
        return named


def local_caller(tenant: str = "default", name: str = "local") -> Caller:
    """Who asks a server that listens on this machine only and asks for no key: everything."""
    return Caller(
        name=name, tenant=tenant, identities=None, users=None, projects=None, scopes=EVERYTHING
    )
