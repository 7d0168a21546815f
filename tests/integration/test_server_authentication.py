"""Keys from making to revoking, as a server sees them; on both kinds of store."""

from __future__ import annotations

import asyncio
import gc
import hmac
import json
import logging
import string
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cofire.errors import (
    ConfigurationError,
    InputError,
    LimitedError,
    NotFoundError,
    StoreUnavailableError,
    UnauthorizedError,
)
from cofire.memories import Memories
from cofire.server import authentication, keys
from cofire.server.access import Caller, Scope, Where, local_caller
from cofire.server.auditing import AuditTrail
from cofire.server.authentication import FRESH, Authenticator
from cofire.server.issuer_keys import from_url
from cofire.server.limits import Limits
from cofire.server.tokens import make_verifier
from cofire.settings import load_settings
from cofire.store import Store
from cofire.store.records import tenant_number

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MICROS = round(NOW.timestamp() * 1e6)
BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def micros(self) -> int:
        return MICROS + round(self.seconds * 1e6)


@pytest.fixture(scope="module")
def file_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("keys") / "memory.db"
    with Memories.open(path, vectors=False, embedder="hashing:64") as memories:
        yield memories.store


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "sqlite":
        yield request.getfixturevalue("file_store")
        return
    url = request.getfixturevalue("postgres_store").app_url
    with Memories.open(url, vectors=False, embedder="hashing:64") as memories:
        yield memories.store


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authenticator(store: Store, clock: Clock) -> Iterator[Authenticator]:
    made = Authenticator(store, clock=clock, now=clock.micros)
    yield made
    made.close()


def who(authenticator: Authenticator, token: str | None, address: str = "192.0.2.1") -> Caller:
    header = None if token is None else f"Bearer {token}"
    return asyncio.run(authenticator.caller(header, address))


def make(store: Store, tenant: str = "acme", **more: Any) -> tuple[str, str]:
    """The id and the token of a new key."""
    record, token = keys.create_key(store, tenant, more.pop("name", "desk"), now=NOW, **more)
    return keys.key_id(record.uid), token


def test_a_key_speaks_for_whom_it_was_made(store: Store, authenticator: Authenticator) -> None:
    id, token = make(
        store, identities=["zoe", "ada"], users=["nora"], projects=None, scopes=["admin", "read"]
    )
    caller = who(authenticator, token)
    assert (caller.name, caller.tenant, caller.key) == ("desk", "acme", keys.key_uid(id))
    assert caller.scopes == {Scope.READ, Scope.ADMIN}
    assert caller.projects is None
    place = caller.place(Where())
    assert (place.identity, place.user) == ("zoe", "nora")


def test_what_is_not_said_of_a_key_is_little(store: Store, authenticator: Authenticator) -> None:
    caller = who(authenticator, make(store)[1])
    assert (caller.identities, caller.users, caller.projects) == (("default",), None, ())
    assert caller.scopes == {Scope.READ, Scope.WRITE}


def test_a_revoked_key_is_good_for_nothing_within_five_seconds(
    store: Store, authenticator: Authenticator, clock: Clock
) -> None:
    id, token = make(store)
    who(authenticator, token)
    assert keys.revoke_key(store, "acme", id, now=NOW)
    who(authenticator, token)  # the answer is fresh
    clock.seconds += FRESH
    with pytest.raises(UnauthorizedError, match="revoked"):
        who(authenticator, token)
    assert not keys.revoke_key(store, "acme", id)


def test_a_key_expires_to_the_second(
    store: Store, authenticator: Authenticator, clock: Clock
) -> None:
    _, token = make(store, expires=NOW + timedelta(seconds=2))
    who(authenticator, token)
    clock.seconds += 2
    with pytest.raises(UnauthorizedError, match="expired"):
        who(authenticator, token)


def forgeries(store: Store) -> dict[str, str]:
    """Tokens that were never made, and the words that they are refused with."""
    one, other = make(store)[1], make(store, "other")[1]
    unknown = "this key is not known here"
    spoilt = "this is no key: it is cut short or mistyped"
    return {
        one[:-43] + other[-43:]: unknown,
        other[:39] + one[39:]: unknown,
        "cofire_" + "A" * 32 + "_" + "A" * 43: unknown,
        "cofire_" + "_" * 32 + "_" + "A" * 43: spoilt,  # a number that no tenant has
        one[:-1]: spoilt,
        one + "A": spoilt,
        one[:-1] + BASE64[BASE64.index(one[-1]) + 1]: spoilt,  # the same bytes, otherwise written
    }


def test_a_forged_key_is_refused(store: Store, authenticator: Authenticator) -> None:
    for token, words in forgeries(store).items():
        with pytest.raises(UnauthorizedError, match=words) as raised:
            who(authenticator, token)
        assert token[7:] not in str(raised.value)


@pytest.mark.parametrize(
    "header",
    [
        "Basic YTpi",
        "Bearer",
        "Bearer a b",
        "cofire_x",
        "Bearer é",
        "Bearer " + "a" * 20_000,
        "\x00",
    ],
)
def test_other_headers_are_refused(file_store: Store, header: str, clock: Clock) -> None:
    for local in (None, local_caller()):
        with pytest.raises(UnauthorizedError):
            asyncio.run(Authenticator(file_store, local=local).caller(header))


@pytest.mark.parametrize("header", [None, "", "  "])
def test_without_a_header_the_local_caller_is_meant_if_there_is_one(
    file_store: Store, header: str | None
) -> None:
    assert (
        asyncio.run(Authenticator(file_store, local=local_caller()).caller(header))
        == local_caller()
    )
    with pytest.raises(UnauthorizedError, match="wants a key"):
        asyncio.run(Authenticator(file_store).caller(header))


def test_a_header_that_is_there_counts_on_a_server_that_asks_for_none(file_store: Store) -> None:
    open_to_all = Authenticator(file_store, local=local_caller(), now=lambda: MICROS)
    assert who(open_to_all, make(file_store, scopes=["read"])[1]).scopes == {Scope.READ}
    with pytest.raises(UnauthorizedError):
        who(open_to_all, "cofire_" + "A" * 32 + "_" + "A" * 43)
    open_to_all.close()


def spied(call: Callable[..., Any], seen: list[tuple[Any, ...]]) -> Callable[..., Any]:
    """The call, noting what it is given."""

    def noting(*given: Any) -> Any:
        seen.append(given)
        return call(*given)

    return noting


def test_unknown_and_known_keys_are_looked_up_and_compared_alike(
    file_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token = make(file_store)
    looked_up: list[tuple[Any, ...]] = []
    compared: list[tuple[Any, ...]] = []
    monkeypatch.setattr(file_store, "find_key", spied(file_store.find_key, looked_up))
    monkeypatch.setattr(hmac, "compare_digest", spied(hmac.compare_digest, compared))
    unknown = "cofire_" + "A" * 32 + "_" + "A" * 43
    wrong = token[:-43] + "A" * 43
    for each in (token, unknown, wrong):
        looking = Authenticator(file_store, now=lambda: MICROS)
        if each == token:
            who(looking, each)
        else:
            with pytest.raises(UnauthorizedError, match="not known here"):
                who(looking, each)
        looking.close()
    assert len(looked_up) == 3
    assert [(len(one), len(other)) for one, other in compared] == [(32, 32)] * 3


def test_the_store_is_asked_once_for_what_is_fresh(
    file_store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token = make(file_store)
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(file_store, "find_key", spied(file_store.find_key, asked))
    looking = Authenticator(file_store, clock=clock, now=clock.micros)
    unknown = "cofire_" + "A" * 32 + "_" + "A" * 43
    for _ in range(10):
        who(looking, token)
        with pytest.raises(UnauthorizedError):
            who(looking, unknown)
    assert len(asked) == 2
    clock.seconds += FRESH
    who(looking, token)
    assert len(asked) == 3
    looking.close()


def test_guessing_is_slowed_down_and_locks_out_nobody_whose_key_was_good(
    file_store: Store, clock: Clock
) -> None:
    """Also where both come through the same proxy."""
    limits = Limits(rate=0, burst=1, failures=5, clock=clock)
    looking = Authenticator(file_store, limits=limits, clock=clock, now=clock.micros)
    _, token = make(file_store)
    who(looking, token)
    for number in range(5):
        with pytest.raises(UnauthorizedError):
            who(looking, f"cofire_{number:032}_" + "A" * 43)
    with pytest.raises(LimitedError) as raised:
        who(looking, f"cofire_{5:032}_" + "A" * 43)
    assert raised.value.retry_after == pytest.approx(12.0)
    clock.seconds += FRESH
    who(looking, token)
    with pytest.raises(UnauthorizedError):
        who(looking, f"cofire_{6:032}_" + "A" * 43, "192.0.2.2")
    looking.close()


def test_a_flood_of_look_ups_is_refused_and_leaves_the_loop_free(
    file_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()
    monkeypatch.setattr(file_store, "find_key", lambda *_: released.wait(10) and None)
    looking = Authenticator(file_store)
    most = authentication.THREADS + authentication.WAITING

    async def flood() -> tuple[list[Any], float]:
        asked = [
            asyncio.ensure_future(looking.caller(f"Bearer cofire_{number:032}_{'A' * 43}"))
            for number in range(most + 20)
        ]
        await asyncio.sleep(0.05)
        started = asyncio.get_running_loop().time()
        await asyncio.sleep(0)
        lag = asyncio.get_running_loop().time() - started
        released.set()
        return await asyncio.gather(*asked, return_exceptions=True), lag

    answers, lag = asyncio.run(flood())
    refused = [answer for answer in answers if isinstance(answer, LimitedError)]
    assert len(refused) == 20
    assert all(answer.overloaded for answer in refused)
    assert lag < 0.5


def test_the_last_use_is_noted_without_anybody_waiting(
    store: Store, authenticator: Authenticator, clock: Clock
) -> None:
    id, token = make(store)
    who(authenticator, token)
    clock.seconds += FRESH
    who(authenticator, token)
    authenticator.close()
    found = next(one for one in store.list_keys("acme") if keys.key_id(one.uid) == id)
    assert found.last_used == MICROS


def test_a_key_that_cannot_be_touched_is_good_all_the_same(
    file_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> bool:
        raise StoreUnavailableError("read-only")

    monkeypatch.setattr(file_store, "touch_key", refuse)
    looking = Authenticator(file_store, now=lambda: MICROS)
    who(looking, make(file_store)[1])
    looking.close()
    assert "not noted" in caplog.text


def test_the_secret_is_nowhere_but_in_the_token(
    store: Store, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    record, token = keys.create_key(store, "acme", "desk", now=NOW)
    secret = token[-43:]
    looking = Authenticator(store, now=lambda: MICROS)
    caller = who(looking, token)
    keys.revoke_key(store, "acme", keys.key_id(record.uid), now=NOW)
    refusing = Authenticator(store, now=lambda: MICROS)
    with pytest.raises(UnauthorizedError) as raised:
        who(refusing, token)
    seen = [
        repr(record), repr(caller), repr(keys.read_token(token)), repr(vars(looking)),
        repr(looking), json.dumps(keys.key_json(record)), str(raised.value), caplog.text,
        repr(store.list_keys("acme")), repr(raised.value.__context__),
    ]  # fmt: skip
    looking.close()
    for text in seen:
        assert secret not in text
        assert token not in text
    assert record.hash.hex() not in json.dumps(keys.key_json(record))
    with pytest.raises(InputError) as given_in_place_of_an_id:
        keys.revoke_key(store, "acme", token)
    assert secret not in str(given_in_place_of_an_id.value)


def test_a_file_holds_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memories.open(path, vectors=False, embedder="hashing:64") as memories:
        _, token = keys.create_key(memories.store, "acme", "desk")
        presented = keys.read_token(token)
    gc.collect()
    assert presented is not None
    data = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert token[-43:].encode() not in data
    assert presented.hash in data


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"name": " "}, "printable"),
        ({"name": "a\nb"}, "printable"),
        ({"name": "a" * 201}, "printable"),
        ({"name": "token:ada"}, "must not begin"),
        ({"identities": []}, "for no identity"),
        ({"identities": [" "]}, "must not be empty"),
        ({"identities": "ada"}, "as a list"),
        ({"users": []}, "for no user"),
        ({"projects": ["x"] * 5 + [f"p{n}" for n in range(1_000)]}, "at most"),
        ({"scopes": []}, "could do nothing"),
        ({"scopes": ["write", "root"]}, "'root' is no scope"),
        ({"expires": NOW}, "already"),
    ],
)
def test_keys_that_make_no_sense_are_not_made(
    file_store: Store, given: dict[str, Any], why: str
) -> None:
    before = len(file_store.list_keys("nobody"))
    with pytest.raises(InputError, match=why):
        make(file_store, "nobody", **given)
    assert len(file_store.list_keys("nobody")) == before


def test_a_key_is_revoked_by_its_own_tenant_only(store: Store) -> None:
    id, _ = make(store)
    with pytest.raises(NotFoundError, match="has no key"):
        keys.revoke_key(store, "other", id)
    assert keys.revoke_key(store, "acme", id)


def test_a_token_says_where_to_look_and_not_who_asks(store: Store) -> None:
    id, token = make(store)
    presented = keys.read_token(token)
    assert presented is not None
    assert presented.tenant_number == tenant_number("acme")
    assert keys.key_id(presented.uid) == id


def test_the_use_of_a_revoked_key_is_in_the_audit_trail(store: Store, clock: Clock) -> None:
    trail = AuditTrail(store, now=clock.micros)
    looking = Authenticator(store, refused=trail.refused, clock=clock, now=clock.micros)
    id, token = make(store, "watched")
    keys.revoke_key(store, "watched", id, now=NOW)
    with pytest.raises(UnauthorizedError):
        who(looking, token)
    trail.close()
    (entry,) = store.list_audit("watched")
    assert (entry.action, entry.outcome, entry.principal) == ("authenticate", "denied", "desk")
    assert entry.key == keys.key_uid(id)


class Issuer:
    """An issuer's address of keys on this machine."""

    def __init__(self) -> None:
        self.private = Ed25519PrivateKey.generate()
        self.asked = 0
        self.answer = 200, json.dumps({"keys": [self.jwk()]}).encode()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                status, body = issuer.answer
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", body.decode())
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/jwks"

    def jwk(self) -> dict[str, Any]:
        made: dict[str, Any] = jwt.algorithms.OKPAlgorithm.to_jwk(
            self.private.public_key(), as_dict=True
        )
        return {**made, "kid": "one"}

    def token(self, **claims: Any) -> str:
        said = {
            "iss": "https://issuer.example", "aud": "cofire", "sub": "ada", "tenant": "acme",
            "exp": datetime.now(UTC) + timedelta(minutes=5), "scope": "cofire:read", **claims,
        }  # fmt: skip
        return jwt.encode(said, self.private, "EdDSA", {"kid": "one"})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def with_issuer(store: Store, issuer: Issuer) -> Authenticator:
    given = {
        "token_issuer": "https://issuer.example", "token_audience": "cofire",
        "token_jwks_url": issuer.url,
    }  # fmt: skip
    verifier = make_verifier(load_settings(**given))
    assert verifier is not None
    return Authenticator(store, verifiers=(verifier,))


def test_tokens_of_an_issuer_count_beside_keys(file_store: Store, issuer: Issuer) -> None:
    looking = with_issuer(file_store, issuer)
    assert who(looking, issuer.token()).name == "token:ada"
    assert who(looking, issuer.token(sub="bob")).name == "token:bob"
    assert who(looking, make(file_store)[1]).name == "desk"
    with pytest.raises(UnauthorizedError, match="another audience"):
        who(looking, issuer.token(aud="mail"))
    assert issuer.asked == 1
    looking.close()


def test_without_an_issuer_tokens_count_for_nothing(file_store: Store, issuer: Issuer) -> None:
    with pytest.raises(UnauthorizedError, match="neither a key"):
        who(Authenticator(file_store), issuer.token())


def test_an_issuer_that_gives_no_keys_is_no_fault_of_who_asks(
    file_store: Store, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.answer = 500, b"down"
    looking = with_issuer(file_store, issuer)
    for _ in range(3):
        with pytest.raises(LimitedError, match="at present"):
            who(looking, issuer.token())
    assert issuer.asked == 1
    assert "could not be read" in caplog.text


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((302, b"http://127.0.0.1:9/elsewhere"), "HTTPError"),
        ((404, b""), "HTTPError"),
        ((200, b"x" * 1_000_001), "more than"),
        ((200, b"<html>"), "no JWKS"),
    ],
)
def test_an_address_that_answers_something_else_gives_no_keys(
    issuer: Issuer, answer: tuple[int, bytes], why: str
) -> None:
    issuer.answer = answer
    with pytest.raises(ConfigurationError, match=why):
        from_url(issuer.url, ["EdDSA"])


def test_a_shared_secret_from_an_address_is_not_taken(issuer: Issuer) -> None:
    issuer.answer = 200, json.dumps({"keys": [{"kty": "oct", "k": "A" * 43}]}).encode()
    with pytest.raises(ConfigurationError, match="no key for"):
        from_url(issuer.url, ["HS256", "EdDSA"])
