"""What is sealed comes back, and nothing else does."""

from __future__ import annotations

import base64
import os

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cofire.errors import ConfigurationError, StoreCorruptError
from cofire.store.sealing import EMPTY, SpaceKey, Vault, parse_key

KEY = SpaceKey(bytes(range(32)), 1, 2)
OTHER_SPACE = SpaceKey(bytes(range(32)), 1, 3)
OTHER_KEY = SpaceKey(bytes(range(1, 33)), 1, 2)
COLUMN, ROW = "items.content", (7,)

texts = st.text(st.characters(codec="utf-8"))
hashes = st.integers(-(2**63), 2**63 - 1)
rows = st.one_of(
    st.tuples(st.integers(0, 2**62)),
    st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)),
    st.tuples(st.binary(min_size=16, max_size=16)),
)


@given(texts, rows)
def test_texts_come_back(text: str, row: tuple[int | bytes, ...]) -> None:
    sealed = KEY.seal_text(text, COLUMN, row)
    assert KEY.open_text(sealed, COLUMN, row) == text
    assert (sealed == text) == (text in EMPTY)
    assert sealed.isascii()


@given(st.binary(), rows)
def test_bytes_come_back_and_are_never_sealed_alike(
    value: bytes, row: tuple[int | bytes, ...]
) -> None:
    sealed = KEY.seal(value, COLUMN, row)
    assert KEY.open(sealed, COLUMN, row) == value
    assert sealed != KEY.seal(value, COLUMN, row)


@given(st.binary(max_size=40), st.data())
def test_any_flipped_bit_is_noticed(value: bytes, data: st.DataObject) -> None:
    sealed = bytearray(KEY.seal(value, COLUMN, ROW))
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(StoreCorruptError):
        KEY.open(bytes(sealed), COLUMN, ROW)


@given(texts, st.data())
def test_any_other_text_is_noticed(text: str, data: st.DataObject) -> None:
    sealed = KEY.seal_text(text, COLUMN, ROW)
    assume(sealed not in EMPTY)
    place = data.draw(st.integers(0, len(sealed) - 1))
    other = sealed[:place] + data.draw(st.characters()) + sealed[place + 1 :]
    assume(other != sealed)
    with pytest.raises(StoreCorruptError):
        KEY.open_text(other, COLUMN, ROW)


@given(texts, rows, rows)
def test_a_value_fits_one_place_only(
    text: str, row: tuple[int | bytes, ...], other: tuple[int | bytes, ...]
) -> None:
    assume(text not in EMPTY and row != other)
    sealed = KEY.seal_text(text, COLUMN, row)
    for key, column, place in (
        (KEY, COLUMN, other),
        (KEY, "items.title", row),
        (OTHER_SPACE, COLUMN, row),
        (OTHER_KEY, COLUMN, row),
    ):
        with pytest.raises(StoreCorruptError):
            key.open_text(sealed, column, place)


@given(hashes)
def test_masks_come_off(number: int) -> None:
    masked = KEY.mask(number)
    assert KEY.unmask(masked) == number
    assert KEY.mask(KEY.unmask(number)) == number
    assert (masked == 0) == (number == 0)
    assert -(2**63) <= masked < 2**63


@given(hashes, hashes)
def test_masks_tell_apart(one: int, other: int) -> None:
    assert (KEY.mask(one) == KEY.mask(other)) == (one == other)


def test_masks_depend_on_the_key_and_change_every_number() -> None:
    numbers = range(1, 1_000)
    assert all(KEY.mask(number) != OTHER_KEY.mask(number) for number in numbers)
    assert all(KEY.mask(number) != number for number in numbers)
    changed = [(KEY.mask(number) ^ KEY.mask(number + 1)).bit_count() for number in numbers]
    assert 28 < sum(changed) / len(changed) < 36  # half of the bits, as if at random


def test_what_would_become_nothing_goes_one_step_on() -> None:
    key = SpaceKey(bytes(32), 1, 2)
    lost = key._restored(0)  # becomes 0 in one step
    number = lost - 2**64 if lost >= 2**63 else lost
    assert key.mask(number) != 0
    assert key.unmask(key.mask(number)) == number


@given(st.binary(min_size=32, max_size=32), st.booleans(), st.booleans())
def test_keys_are_read_in_either_alphabet(key: bytes, url_safe: bool, padded: bool) -> None:
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    text = encode(key).decode()
    assert parse_key(f"  {text if padded else text.rstrip('=')}\n", "the key") == key


@pytest.mark.parametrize("text", ["", "secret", "ä", "A" * 42, "A" * 44, "!" * 43])
def test_what_is_no_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigurationError, match="the key") as caught:
        parse_key(text, "the key")
    assert not text or text not in str(caught.value)


def test_a_wrapped_key_opens_under_its_master_key_in_its_space_only() -> None:
    master = os.urandom(32)
    entry = Vault(master).make(1, 2, "a")
    assert Vault(master).admit(1, 2, entry, "a", strict=True)
    for vault, tenant, space in ((Vault(os.urandom(32)), 1, 2), (Vault(master), 1, 3)):
        with pytest.raises(ConfigurationError, match="another key"):
            vault.admit(tenant, space, entry, "a", strict=True)
    with pytest.raises(ConfigurationError, match="no key is set"):
        Vault().admit(1, 2, entry, "a", strict=True)
    with pytest.raises(ConfigurationError, match="another key"):
        Vault(master).admit(1, 2, {**entry, "id": "0" * 16}, "a", strict=True)
