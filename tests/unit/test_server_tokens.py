"""Tokens of an issuer: which count, and whom they speak for."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cofire.errors import ConfigurationError, LimitedError, UnauthorizedError
from cofire.server.access import Scope
from cofire.server.issuer_keys import PAUSE, REFRESHED, IssuerKeys, VerifyingKey, from_file
from cofire.server.tokens import Claims, TokenVerifier, make_verifier
from cofire.settings import load_settings

ISSUER, AUDIENCE = "https://issuer.example", "cofire"
PRIVATE: dict[str, Any] = {
    "RS256": generate_rsa(65537, 2048),
    "ES256": generate_private_key(SECP256R1()),
    "EdDSA": Ed25519PrivateKey.generate(),
}
OTHER = Ed25519PrivateKey.generate()
SECRET = bytes(range(32))
ALL = ("RS256", "ES256", "EdDSA")


def jwk(algorithm: str, **more: Any) -> dict[str, Any]:
    kinds: dict[str, Any] = {
        "RS256": jwt.algorithms.RSAAlgorithm, "ES256": jwt.algorithms.ECAlgorithm,
        "EdDSA": jwt.algorithms.OKPAlgorithm,
    }  # fmt: skip
    kind = kinds[algorithm]
    made: dict[str, Any] = kind.to_jwk(PRIVATE[algorithm].public_key(), as_dict=True)
    return {**made, "kid": algorithm, **more}


def jwks(path: Path, members: Sequence[object]) -> Path:
    path.write_text(json.dumps({"keys": members}), encoding="utf-8")
    return path


@pytest.fixture
def verifier(tmp_path: Path) -> TokenVerifier:
    return by(tmp_path)


def by(tmp_path: Path, **claims: Any) -> TokenVerifier:
    path = jwks(tmp_path / "jwks.json", [jwk(name) for name in ALL])
    return TokenVerifier(
        ISSUER, AUDIENCE, IssuerKeys(lambda: from_file(path, ALL)), Claims(**claims)
    )


def token(
    algorithm: str = "EdDSA", key: Any = None, headers: dict[str, Any] | None = None, **claims: Any
) -> str:
    said = {
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 300, "tenant": "acme",
        **claims,
    }  # fmt: skip
    return jwt.encode(
        {name: value for name, value in said.items() if value is not None},
        PRIVATE[algorithm] if key is None else key,
        algorithm,
        {"kid": algorithm} if headers is None else headers,
    )


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize("headers", [None, {}], ids=["kid", "no kid"])
def test_a_token_of_each_algorithm_counts(
    verifier: TokenVerifier, algorithm: str, headers: dict[str, Any] | None
) -> None:
    caller = verifier.caller(token(algorithm, headers=headers, scope="openid cofire:read"))
    assert caller.name == "token:ada"
    assert (caller.tenant, caller.key) == ("acme", None)
    assert caller.scopes == {Scope.READ}


def test_what_a_token_does_not_say_it_does_not_permit(verifier: TokenVerifier) -> None:
    caller = verifier.caller(token())
    assert caller.scopes == frozenset()
    assert (caller.identities, caller.users, caller.projects) == (("default",), ("ada",), ())


def test_claims_are_read_as_they_are_named(tmp_path: Path) -> None:
    named: dict[str, Any] = {
        "access": {"roles": ["cofire:write", "write", "admin", 3]}, "identities": ["zoe", "ada"],
        "projects": "*", "https://issuer.example/users": ["*"],
    }  # fmt: skip
    verifier = by(
        tmp_path, scopes="access.roles", users="https://issuer.example/users", fixed_tenant="one"
    )
    caller = verifier.caller(token(**named))
    assert caller.scopes == {Scope.WRITE}
    assert caller.identities == ("zoe", "ada")
    assert caller.users is None
    assert caller.projects is None
    assert caller.tenant == "one"


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": time.time() - 31}, "has expired"),
        ({"exp": None}, "must have the claims"),
        ({"nbf": time.time() + 86_400}, "not good yet"),
        ({"aud": "another"}, "another audience"),
        ({"aud": None}, "must have the claims"),
        ({"iss": "https://elsewhere.example"}, "another issuer"),
        ({"iss": None}, "must have the claims"),
        ({"sub": None}, "must have the claims"),
        ({"sub": " "}, "claim 'sub'"),
        ({"sub": "a" * 201}, "claim 'sub'"),
        ({"sub": "a\nb"}, "claim 'sub'"),
        ({"tenant": None}, "claim 'tenant'"),
        ({"tenant": ["a"]}, "claim 'tenant'"),
        ({"tenant": ""}, "claim 'tenant'"),
        ({"identities": [3]}, "claim 'identities'"),
        ({"identities": [""]}, "claim 'identities'"),
        ({"users": {"a": 1}}, "claim 'users'"),
        ({"projects": ["x"] * 1001}, "claim 'projects'"),
    ],
)
def test_a_token_that_says_too_little_or_something_else_is_refused(
    verifier: TokenVerifier, claims: dict[str, Any], why: str
) -> None:
    with pytest.raises(UnauthorizedError, match=why):
        verifier.caller(token(**claims))


def test_clocks_may_differ_by_half_a_minute(verifier: TokenVerifier) -> None:
    verifier.caller(token(exp=time.time() - 25))
    verifier.caller(token(nbf=time.time() + 25))


def unsigned() -> str:
    parts = ({"alg": "none", "typ": "JWT", "kid": "EdDSA"}, jwt.decode(
        token(), options={"verify_signature": False}))  # fmt: skip
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts
    ) + "."  # fmt: skip


def public_key_as_secret() -> str:
    """The classic: the public key, which everybody has, taken for a shared secret."""
    import hashlib
    import hmac

    public = PRIVATE["RS256"].public_key()
    secret = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = {"alg": "HS256", "typ": "JWT", "kid": "RS256"}
    body = jwt.decode(token(), options={"verify_signature": False})
    signed = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in (head, body)
    )
    signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (unsigned, "algorithm that its key is not for"),
        (public_key_as_secret, "algorithm that its key is not for"),
        (lambda: token("EdDSA", OTHER), "signature is wrong"),
        (lambda: token("EdDSA", OTHER, {"kid": "unknown"}), "none of the issuer's"),
        (lambda: token("EdDSA", headers={"kid": "ES256"}), "algorithm that its key is not for"),
        (lambda: token()[:-8] + "AAAAAAAA", "signature is wrong"),
        (lambda: "a.b.c", "no token"),
        (lambda: "x", "no token"),
        (lambda: ".." * 100, "no token"),
    ],
)
def test_a_forged_token_is_refused(
    verifier: TokenVerifier, made: Callable[[], str], why: str
) -> None:
    forged = made()
    with pytest.raises(UnauthorizedError, match=why) as raised:
        verifier.caller(forged)
    assert forged not in str(raised.value) or len(forged) < 3


def test_a_key_that_embeds_itself_or_names_an_address_is_not_believed(
    verifier: TokenVerifier,
) -> None:
    own = jwt.algorithms.OKPAlgorithm.to_jwk(OTHER.public_key(), as_dict=True)
    headers = {"kid": "EdDSA", "jwk": own, "jku": "https://attacker.example/jwks.json"}
    with pytest.raises(UnauthorizedError, match="signature is wrong"):
        verifier.caller(token("EdDSA", OTHER, headers))


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def key(id: str) -> VerifyingKey:
    return VerifyingKey(id=id, algorithm="EdDSA", key=PRIVATE["EdDSA"].public_key())


def test_an_unknown_key_id_asks_the_issuer_once_a_minute() -> None:
    clock, reads, there = Clock(), [], [key("a")]

    def read() -> list[VerifyingKey]:
        reads.append(clock.seconds)
        return there

    keys = IssuerKeys(read, clock=clock)
    for _ in range(5):
        assert keys.find("b") == ()
    assert reads == [0.0]
    there.append(key("b"))
    clock.seconds += PAUSE
    assert [found.id for found in keys.find("b")] == ["b"]
    assert [found.id for found in keys.find(None)] == ["a", "b"]
    assert len(reads) == 2


def test_a_key_that_was_withdrawn_goes_and_an_issuer_out_of_reach_keeps_its_keys() -> None:
    clock, there = Clock(), [key("a"), key("b")]

    def read() -> list[VerifyingKey]:
        if not there:
            raise ConfigurationError("out of reach")
        return list(there)

    keys = IssuerKeys(read, clock=clock)
    assert keys.find("b")
    del there[1]
    clock.seconds += REFRESHED
    assert keys.find("b") == ()
    there.clear()
    clock.seconds += REFRESHED
    assert keys.find("a")


def test_without_any_keys_a_token_may_be_tried_again_later() -> None:
    def read() -> list[VerifyingKey]:
        raise ConfigurationError("out of reach")

    with pytest.raises(LimitedError, match="at present") as raised:
        IssuerKeys(read, clock=Clock()).find("a")
    assert raised.value.overloaded


def test_keys_show_nothing_of_themselves() -> None:
    secret = VerifyingKey(id=None, algorithm="HS256", key=b"my secret " * 4)
    assert "my secret" not in repr(secret)


def test_a_public_key_in_pem(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(
        PRIVATE["ES256"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    assert [found.algorithm for found in from_file(path, ALL)] == ["ES256"]
    with pytest.raises(ConfigurationError, match="not for RS256"):
        from_file(path, ["RS256"])


def test_a_shared_secret_counts_only_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    with pytest.raises(ConfigurationError, match="no public key"):
        from_file(path, ALL)
    keys = IssuerKeys(lambda: from_file(path, ["HS256"]))
    verifier = TokenVerifier(ISSUER, AUDIENCE, keys)
    assert verifier.caller(token("HS256", SECRET, {})).name == "token:ada"
    path.write_bytes(b"too short")
    with pytest.raises(ConfigurationError, match="less than 32 bytes"):
        from_file(path, ["HS256"])


@pytest.mark.parametrize(
    "member",
    [
        {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).decode(), "kid": "s"},
        jwk("RS256", use="enc"),
        jwk("RS256", alg="RS512"),
        {"kty": "unknown"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {},
        3,
    ],
)
def test_keys_of_other_kinds_are_passed_over(tmp_path: Path, member: object) -> None:
    path = jwks(tmp_path / "jwks.json", [member, jwk("ES256")])
    assert [found.algorithm for found in from_file(path, ALL)] == ["ES256"]
    with pytest.raises(ConfigurationError, match="no key for"):
        from_file(jwks(path, [member]), ALL)


@pytest.mark.parametrize("text", ["{", "[]", '{"keys": 3}', "{}", '{"keys": ' + "[" * 100_000])
def test_a_file_that_is_no_jwks_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"no JWKS"):
        from_file(path, ALL)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"token_issuer": ISSUER}, "COFIRE_TOKEN_AUDIENCE"),
        ({"token_issuer": ISSUER, "token_audience": AUDIENCE}, "COFIRE_TOKEN_JWKS_URL"),
        ({"token_issuer": ISSUER, "token_audience": AUDIENCE, "token_key_file": "missing.json"},
         "cannot be read"),
    ],
)  # fmt: skip
def test_an_issuer_needs_its_audience_and_its_keys(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        make_verifier(load_settings(**given))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"token_jwks_url": "http://issuer.example/jwks"}, "https://"),
        ({"token_jwks_url": "file:///etc/passwd"}, "https://"),
        ({"token_jwks_url": "http://localhost.attacker.example/"}, "https://"),
        ({"token_algorithms": "none"}, "some of RS256"),
        ({"token_algorithms": "HS256,RS256"}, "must not mix"),
    ],
)
def test_settings_that_are_unsafe_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        load_settings(**given)


def test_without_an_issuer_nothing_verifies_tokens() -> None:
    assert make_verifier(load_settings()) is None
    on_this_machine = {"token_jwks_url": "http://127.0.0.1:8000/jwks"}
    assert load_settings(**on_this_machine).token_jwks_url
