"""The public keys of an issuer: from its address or a file, kept, and read again when need be."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from threading import Lock
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from cofire.errors import ConfigurationError, LimitedError
from cofire.logs import get_logger

TIMEOUT = 5.0
"""Seconds for fetching an issuer's keys."""
LARGEST = 1_000_000
"""Bytes of an issuer's keys."""
REFRESHED = 3_600.0
"""Seconds after which keys are read again, so that one which its issuer withdrew goes."""
PAUSE = 60.0
"""Seconds between two attempts at least: an unknown key id makes nobody ask the issuer more."""
SHORTEST_SECRET = 32
"""Bytes of a shared secret (HS256) at least, as RFC 7518 section 3.2 has it."""
SHORTEST_MODULUS = 2_048
"""Bits of an RSA key at least (RFC 7518 section 3.3)."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyingKey:
    """A key that verifies signatures of one algorithm. `id` is its `kid`, None if it has none."""

    id: str | None
    algorithm: str
    key: Any = field(repr=False)


class IssuerKeys:
    """The keys that `read` gives. Safe to use from many threads; may block while it reads."""

    def __init__(
        self,
        read: Callable[[], Sequence[VerifyingKey]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` raises ConfigurationError where there are none to be had."""
        self._read, self._clock = read, clock
        self._keys: tuple[VerifyingKey, ...] = ()
        self._tried: float | None = None
        self._lock = Lock()

    def find(self, id: str | None) -> tuple[VerifyingKey, ...]:
        """The keys that may have signed a token whose `kid` is `id`: that one, or without a `kid`
        all. Raises LimitedError if there are no keys at present."""
        with self._lock:
            if self._is_due(REFRESHED):
                self._refresh()
            found = self._matching(id)
            if not found and self._is_due(PAUSE):
                self._refresh()
                found = self._matching(id)
            if not self._keys:
                raise LimitedError(
                    "the issuer's keys cannot be had at present; try again in a minute",
                    retry_after=PAUSE,
                    overloaded=True,
                )
        return found

    def _matching(self, id: str | None) -> tuple[VerifyingKey, ...]:
        return self._keys if id is None else tuple(key for key in self._keys if key.id == id)

    def _is_due(self, after: float) -> bool:
        return self._tried is None or self._clock() - self._tried >= after

    def _refresh(self) -> None:
        self._tried = self._clock()
        try:
            self._keys = tuple(self._read())
        except ConfigurationError as error:
            _log.warning("the issuer's keys could not be read", error=str(error))


def from_url(url: str, algorithms: Sequence[str]) -> tuple[VerifyingKey, ...]:
    """The keys at an address (a JWKS, RFC 7517). Never a shared secret: whoever can answer in the
    issuer's place could choose it. Raises ConfigurationError."""
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - the settings take https, and http for this machine only
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=TIMEOUT) as answer:
            data = answer.read(LARGEST + 1)
    except (OSError, HTTPException) as error:
        raise ConfigurationError(
            f"{url} did not give the issuer's keys: {type(error).__name__}"
        ) from error
    if len(data) > LARGEST:
        raise ConfigurationError(f"{url} gave more than {LARGEST:,} bytes of keys")
    public = [name for name in algorithms if not name.startswith("HS")]
    return _from_jwks(data, public, url)


def from_file(path: Path, algorithms: Sequence[str]) -> tuple[VerifyingKey, ...]:
    """The keys in a file: a JWKS, a public key in PEM, or, if HS256 is the only algorithm, the
    shared secret itself. Raises ConfigurationError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    if tuple(algorithms) == ("HS256",):
        return (_shared_secret(data.strip(), path),)
    if data.lstrip().startswith(b"{"):
        return _from_jwks(data, algorithms, path)
    return (_from_pem(data, algorithms, path),)


def _shared_secret(secret: bytes, path: Path) -> VerifyingKey:
    if len(secret) < SHORTEST_SECRET:
        raise ConfigurationError(f"the secret in {path} has less than {SHORTEST_SECRET} bytes")
    return VerifyingKey(id=None, algorithm="HS256", key=secret)


def _from_pem(data: bytes, algorithms: Sequence[str], path: Path) -> VerifyingKey:
    try:
        key = load_pem_public_key(data)
    except ValueError as error:
        raise ConfigurationError(f"{path} has no public key in PEM, and no JWKS") from error
    algorithm = _algorithm(key)
    if algorithm is None or algorithm not in algorithms:
        raise ConfigurationError(f"the key in {path} is not for {', '.join(algorithms)}")
    return VerifyingKey(id=None, algorithm=algorithm, key=key)


def _algorithm(key: object) -> str | None:
    """What signatures a key verifies: of each kind of key those of one algorithm."""
    if isinstance(key, RSAPublicKey) and key.key_size >= SHORTEST_MODULUS:
        return "RS256"
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return "ES256"
    return "EdDSA" if isinstance(key, Ed25519PublicKey) else None


def _from_jwks(data: bytes, algorithms: Sequence[str], where: object) -> tuple[VerifyingKey, ...]:
    """Those of a JWKS that verify signatures of these algorithms; others are passed over."""
    try:
        members = json.loads(data)["keys"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigurationError(f"{where} has no JWKS: an object with 'keys'") from error
    if not isinstance(members, list):
        raise ConfigurationError(f"{where} has no JWKS: 'keys' is no list")
    found = [_from_jwk(member) for member in members if isinstance(member, dict)]
    usable = tuple(key for key in found if key is not None and key.algorithm in algorithms)
    if not usable:
        raise ConfigurationError(f"{where} has no key for {', '.join(algorithms)}")
    return usable


def _from_jwk(member: Mapping[str, Any]) -> VerifyingKey | None:
    if member.get("use", "sig") != "sig":
        return None
    try:
        read = jwt.PyJWK(dict(member))
    except jwt.PyJWTError:
        return None
    id = member.get("kid")
    algorithm = "HS256" if member.get("kty") == "oct" else _algorithm(read.key)
    if algorithm is None or algorithm != read.algorithm_name:
        return None
    if algorithm == "HS256" and len(read.key) < SHORTEST_SECRET:
        return None
    return VerifyingKey(id=id if isinstance(id, str) else None, algorithm=algorithm, key=read.key)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An issuer's keys are where its operator says, and nowhere that an answer says."""

    def redirect_request(self, *given: Any, **named: Any) -> None:
        del given, named
