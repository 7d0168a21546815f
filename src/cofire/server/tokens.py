"""Bearer tokens of an issuer (JWT, RFC 7519), for those who have one: whom a token speaks for.

Which algorithm verifies a signature is a property of the key, never of the token (RFC 8725 section
2.1). What a token does not say, it does not permit: without scopes it may do nothing, without users
it is for the memories of its own subject only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt

from cofire.errors import ConfigurationError, UnauthorizedError
from cofire.server.access import DEFAULT_IDENTITY, Caller, Scope
from cofire.server.issuer_keys import IssuerKeys, VerifyingKey, from_file, from_url
from cofire.server.keys import FOREIGN, MOST_NAMES
from cofire.store.serving_records import LONGEST_NAME

if TYPE_CHECKING:
    from cofire.settings import Settings

ALGORITHMS = ("RS256", "ES256", "EdDSA", "HS256")
LEEWAY = 30.0
"""Seconds by which the clocks of the issuer and of this server may differ."""
ANY = "*"
"""In a claim that lists names: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Which claims say what. A name with dots also means a claim within a claim, as in
    "realm_access.roles". `fixed_tenant`: the tenant of every token, in place of a claim.
    `scope_prefix`: how those scopes begin that are meant for Cofire; others are passed over."""

    tenant: str = "tenant"
    identities: str = "identities"
    users: str = "users"
    projects: str = "projects"
    scopes: str = "scope"
    fixed_tenant: str | None = None
    scope_prefix: str = "cofire:"


class TokenVerifier:
    """Tokens of one issuer, for one audience. Safe to use from many threads; may block."""

    def __init__(
        self, issuer: str, audience: str, keys: IssuerKeys, claims: Claims | None = None
    ) -> None:
        self._issuer, self._audience, self._keys = issuer, audience, keys
        self._claims = claims if claims is not None else Claims()

    def caller(self, token: str) -> Caller:
        """Whom a token speaks for. Raises UnauthorizedError, LimitedError (the issuer's keys cannot
        be had)."""
        try:
            id = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError:
            raise UnauthorizedError("this is no key of Cofire, and no token (JWT)") from None
        keys = self._keys.find(id if isinstance(id, str) else None)
        return self._speaks_for(self._verified(token, keys))

    def _verified(self, token: str, keys: tuple[VerifyingKey, ...]) -> Mapping[str, Any]:
        refusal = "its key is none of the issuer's"
        for key in keys:
            try:
                return jwt.decode(
                    token,
                    key.key,
                    algorithms=[key.algorithm],
                    audience=self._audience,
                    issuer=self._issuer,
                    leeway=LEEWAY,
                    options={"require": ["exp", "iss", "aud", "sub"]},
                )
            except jwt.PyJWTError as error:
                refusal = _why(error)
        raise UnauthorizedError(f"this token does not count: {refusal}")

    def _speaks_for(self, said: Mapping[str, Any]) -> Caller:
        claims, subject = self._claims, _text(said["sub"], "sub")
        tenant = claims.fixed_tenant
        if tenant is None:
            tenant = _text(_claim(said, claims.tenant), claims.tenant)
        return Caller(
            name=f"{FOREIGN}{subject}",
            tenant=tenant,
            identities=_names(said, claims.identities, (DEFAULT_IDENTITY,)),
            users=_names(said, claims.users, (subject,)),
            projects=_names(said, claims.projects, ()),
            scopes=self._scopes(said),
        )

    def _scopes(self, said: Mapping[str, Any]) -> frozenset[Scope]:
        value, prefix = _claim(said, self._claims.scopes), self._claims.scope_prefix
        words = value.split() if isinstance(value, str) else value
        named = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
        meant = {word.removeprefix(prefix) for word in named if word.startswith(prefix)}
        return frozenset(scope for scope in Scope if scope.value in meant)


def make_verifier(settings: Settings) -> TokenVerifier | None:
    """What verifies tokens, if an issuer is configured. Raises ConfigurationError."""
    if settings.token_issuer is None:
        return None
    if settings.token_audience is None:
        raise ConfigurationError(
            "COFIRE_TOKEN_ISSUER needs COFIRE_TOKEN_AUDIENCE: a token for another service of the "
            "same issuer must not count here"
        )
    return TokenVerifier(
        settings.token_issuer,
        settings.token_audience,
        IssuerKeys(_reader(settings)),
        Claims(
            tenant=settings.token_tenant_claim,
            identities=settings.token_identities_claim,
            users=settings.token_users_claim,
            projects=settings.token_projects_claim,
            scopes=settings.token_scopes_claim,
            fixed_tenant=settings.token_tenant,
            scope_prefix=settings.token_scope_prefix,
        ),
    )


def _reader(settings: Settings) -> Callable[[], tuple[VerifyingKey, ...]]:
    algorithms = settings.token_algorithm_names
    url, file = settings.token_jwks_url, settings.token_key_file
    if (url is None) == (file is None):
        raise ConfigurationError(
            "COFIRE_TOKEN_ISSUER needs the issuer's keys: either COFIRE_TOKEN_JWKS_URL or "
            "COFIRE_TOKEN_KEY_FILE"
        )
    if url is not None:
        return partial(from_url, url, algorithms)
    path = Path(str(file)).expanduser()
    from_file(path, algorithms)  # a file that is wrong is told now, not at the first request
    return partial(from_file, path, algorithms)


def _claim(said: Mapping[str, Any], name: str) -> Any:
    """A claim's value, None if it is not there."""
    if name in said:
        return said[name]
    value: Any = said
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _text(value: Any, claim: str) -> str:
    longest = LONGEST_NAME - len(FOREIGN)
    good = isinstance(value, str) and value.strip() and len(value) <= longest
    if not good or not value.isprintable():
        raise UnauthorizedError(
            f"this token does not count: its claim {claim!r} must be a text of 1 to {longest} "
            "printable characters"
        )
    return str(value)


def _names(said: Mapping[str, Any], claim: str, default: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names that a claim lists, `default` if it is not there; None for any."""
    value = _claim(said, claim)
    if value is None:
        return default
    listed = [value] if isinstance(value, str) else value
    if listed == [ANY]:
        return None
    if not isinstance(listed, list) or len(listed) > MOST_NAMES:
        raise UnauthorizedError(
            f"this token does not count: its claim {claim!r} must be a list of at most "
            f"{MOST_NAMES} names"
        )
    return tuple(dict.fromkeys(_text(name, claim) for name in listed))


def _why(error: jwt.PyJWTError) -> str:
    """In words that repeat nothing of the token."""
    for kind, words in _REASONS:
        if isinstance(error, kind):
            return words
    return "it cannot be read"


_REASONS: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "it has expired"),
    (jwt.ImmatureSignatureError, "it is not good yet"),
    (jwt.InvalidAudienceError, "it is for another audience"),
    (jwt.InvalidIssuerError, "another issuer made it"),
    (jwt.MissingRequiredClaimError, "it must have the claims exp, iss, aud and sub"),
    (jwt.InvalidAlgorithmError, "it is signed by an algorithm that its key is not for"),
    (jwt.InvalidSignatureError, "its signature is wrong"),
)
