"""`cofire keys` and `cofire audit`: what a person sees and what a script gets."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cofire_process import Cofire, Done

from cofire.cli import main
from cofire.cli.keys import expiry
from cofire.errors import InputError
from cofire.server import keys
from cofire.store import open_store

TOKEN = re.compile(r"cofire_[A-Za-z0-9_-]{32}_[A-Za-z0-9_-]{43}")


class SameProcess(Cofire):
    """The command without a process of its own, which takes most of the time."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(folder)
        self._capsys = capsys

    def run(self, *arguments: str, **_: object) -> Done:
        self._capsys.readouterr()
        code = main(arguments)
        out, err = self._capsys.readouterr()
        return Done(code=code, out=out, err=err)


@pytest.fixture
def cofire(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Cofire:
    made = SameProcess(tmp_path, capsys)
    for name in ("HOME", "COFIRE_STORE", "COFIRE_CONFIG", "COFIRE_EMBEDDER"):
        monkeypatch.setenv(name, made.env[name])
    return made


def test_a_key_is_alone_on_standard_output_and_shown_only_once(cofire: Cofire) -> None:
    done = cofire.run("keys", "create", "--name", "desk")
    assert done.code == 0
    assert TOKEN.fullmatch(done.out.strip())
    assert "shown only now" in done.err
    assert done.out.strip() not in done.err
    secret = done.out.strip()[-43:]
    for words in (("keys", "list"), ("keys", "list", "--json"), ("audit",), ("audit", "--json")):
        told = cofire.run(*words)
        assert told.code == 0
        assert secret not in told.out + told.err
    assert "desk" in cofire.run("keys", "list").out


def test_a_key_as_json_has_what_was_asked_for(cofire: Cofire) -> None:
    made = cofire.run(
        "keys", "create", "--name", "helpdesk", "--identity", "zoe", "--identity", "ada",
        "--user", "nora", "--project", "site", "--scope", "read", "--scope", "forget",
        "--tenant", "acme", "--expires", "90d", "--json",
    ).json  # fmt: skip
    assert TOKEN.fullmatch(made.pop("token"))
    expected = {
        "name": "helpdesk", "tenant": "acme", "state": "good", "identities": ["zoe", "ada"],
        "users": ["nora"], "projects": ["site"], "scopes": ["read", "forget"],
        "revoked": None, "last_used": None,
    }  # fmt: skip
    assert {name: made[name] for name in expected} == expected
    lasts = datetime.fromisoformat(made["expires"]) - datetime.fromisoformat(made["created"])
    assert lasts == timedelta(days=90)
    assert cofire.run("keys", "list", "--tenant", "acme", "--json").json == [made]
    assert cofire.run("keys", "list", "--json").json == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), {"identities": ["default"], "users": None, "projects": [], "expires": None,
              "scopes": ["read", "write"], "tenant": "default"}),
        (("--any-identity", "--any-project"), {"identities": None, "projects": None}),
    ],
)  # fmt: skip
def test_what_a_key_is_for_by_default(
    cofire: Cofire, words: tuple[str, ...], expected: dict[str, object]
) -> None:
    made = cofire.run("keys", "create", "--name", "desk", *words, "--json").json
    assert {name: made[name] for name in expected} == expected


def test_options_before_the_command_count_too(cofire: Cofire) -> None:
    made = cofire.run(
        "--identity", "zoe", "--tenant", "acme", "keys", "create", "--name", "d", "--json"
    ).json
    assert (made["identities"], made["tenant"]) == (["zoe"], "acme")


def test_a_revoked_key_is_listed_as_such_and_entered(cofire: Cofire) -> None:
    made = cofire.run("keys", "create", "--name", "desk", "--json").json
    assert "is revoked" in cofire.run("keys", "revoke", made["id"]).out
    assert "was revoked before" in cofire.run("keys", "revoke", made["id"]).out
    again = cofire.run("keys", "revoke", made["id"], "--json").json
    assert (again["revoked"] is not None, again["state"]) == (True, "revoked")
    entered = cofire.run("audit", "--json").json
    assert [entry["action"] for entry in entered] == ["keys.revoke", "keys.create"]
    assert {entry["key"] for entry in entered} == {made["id"]}
    assert {entry["surface"] for entry in entered} == {"cli"}


def test_the_audit_trail_is_narrowed_down(cofire: Cofire) -> None:
    for name in ("one", "two", "three"):
        cofire.run("keys", "create", "--name", name)
    assert len(cofire.run("audit", "--json").json) == 3
    assert len(cofire.run("audit", "-n", "2", "--json").json) == 2
    assert cofire.run("audit", "--action", "forget", "--json").json == []
    assert cofire.run("audit", "--until", "2020-01-01", "--json").json == []
    assert len(cofire.run("audit", "--since", "2020-01-01", "--principal", "local",
                          "--json").json) == 3  # fmt: skip
    assert "Nothing of the kind" in cofire.run("audit", "--principal", "nobody").out
    assert cofire.run("audit").out.count("keys.create") == 3


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("create", "--name", "desk", "--scope", "root"), "'root' is no scope"),
        (("create", "--name", "desk", "--expires", "soon"), "--expires takes a span"),
        (("create", "--name", "desk", "--expires", "2020-01-01"), "expired already"),
        (("create", "--name", "desk", "--expires", "999999y"), "too far ahead"),
        (("create", "--name", " "), "printable"),
        (("create", "--name", "desk", "--identity", "zoe", "--any-identity"), "different things"),
        (("revoke", "desk"), "not the id of a key"),
        (("revoke", "019d0b7c-1f2e-7a61-8f53-2c9b6de1a001"), "has no key"),
    ],
)
def test_what_cannot_be_is_said_in_plain_words(
    cofire: Cofire, words: tuple[str, ...], why: str
) -> None:
    cofire.run("keys", "create", "--name", "there already")
    done = cofire.run("keys", *words)
    assert done.code != 0
    assert why in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert len(cofire.run("keys", "list", "--json").json) == 1


def test_a_key_in_place_of_its_id_is_not_repeated(cofire: Cofire) -> None:
    token = cofire.run("keys", "create", "--name", "desk").out.strip()
    for words in (("keys", "revoke", token), ("keys", "revoke", token, "--json")):
        done = cofire.run(*words)
        assert done.code != 0
        assert token not in done.out + done.err


def test_without_a_store_there_are_no_keys(cofire: Cofire) -> None:
    done = cofire.run("keys", "list")
    assert done.code != 0
    assert not cofire.store.exists()


def test_the_store_has_the_hash_of_what_was_shown(cofire: Cofire) -> None:
    token = cofire.run("keys", "create", "--name", "desk").out.strip()
    presented = keys.read_token(token)
    assert presented is not None
    with open_store(cofire.store, create=False) as store:
        found = store.find_key(presented.tenant_number, presented.uid)
    assert found is not None
    assert found.hash == presented.hash


NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12h", NOW + timedelta(hours=12)),
        ("90d", NOW + timedelta(days=90)),
        ("4 W", NOW + timedelta(days=28)),
        ("1y", NOW + timedelta(days=365)),
        ("2027-01-01", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2027-01-01T00:00:00+02:00", datetime(2026, 12, 31, 22, tzinfo=UTC)),
    ],
)
def test_a_span_or_a_time(text: str, expected: datetime) -> None:
    assert expiry(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "0d", "-3d", "d", "3", "3 fortnights"])
def test_neither_a_span_nor_a_time(text: str) -> None:
    with pytest.raises(InputError, match="takes a span"):
        expiry(text, NOW)
