"""Encryption at rest: keys, sealed values, masked hashes, and the keys of one store's spaces.

A space that is encrypted has a random data key, kept in `spaces.settings` wrapped by the master
key (AES-256-GCM, the ids of tenant, space and key as associated data). From it come two keys by
HKDF-SHA256 (RFC 5869): one seals values (AES-256-GCM, NIST SP 800-38D, a random nonce of 96 bits
each; associated data: tenant, space, table, column and the row's own key, so that a value fits
nowhere else), one masks hashes. A sealed value is nonce, ciphertext and tag; where the column holds
text, in base64.

Hashes of words are looked up, so equal ones have to stay equal: they go through a keyed permutation
of 64-bit numbers, a Feistel network of ten rounds like that of FF1 (NIST SP 800-38G) with keyed
BLAKE2b as its round function. 0, which means "none", stays 0.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cofire.errors import ConfigurationError, MissingExtraError, StoreCorruptError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
SETTING = "sealed"
"""Where a space's settings have its wrapped key."""

EMPTY = frozenset(("", "[]", "{}"))
"""Texts that are stored as they are: they say only that there is nothing."""

_NONCE, _TAG = 12, 16
_ROUNDS = 10
_HALF = 0xFFFFFFFF
_WHOLE = (1 << 64) - 1
_SIGN = 1 << 63
_MASKS_KEPT = 200_000


def parse_key(text: str, where: str) -> bytes:
    """A master key from base64 (its URL-safe alphabet or the other). Raises ConfigurationError,
    which never shows what was given."""
    plain = "".join(text.split()).replace("+", "-").replace("/", "_").rstrip("=")
    try:
        key = base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as exc:
        raise ConfigurationError(f"{where} is no base64") from exc
    if len(key) != KEY_BYTES:
        raise ConfigurationError(
            f"{where} must be {KEY_BYTES} random bytes in base64, as `openssl rand -base64 "
            f"{KEY_BYTES}` prints them; it has {len(key)} bytes"
        )
    return key


def _aead(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as exc:
        raise MissingExtraError(
            'encrypted spaces need the extra "encryption": pip install "cofire[encryption]"'
        ) from exc
    return AESGCM(key)


def _derived(key: bytes, purpose: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose).derive(key)


class SpaceKey:
    """Seals and opens the values of one space, and masks its hashes. Safe across threads and forks:
    it keeps no state but a cache."""

    __slots__ = (
        "_aead",
        "_invalid",
        "_masked",
        "_masking",
        "_prefixes",
        "_unmasked",
        "id",
        "place",
    )

    def __init__(self, data_key: bytes, tenant: int, space: int, id: str = "") -> None:
        from cryptography.exceptions import InvalidTag

        self.id = id
        self._invalid = InvalidTag
        self.place = f"cofire {tenant} {space} "
        self._aead = _aead(_derived(data_key, b"cofire values"))
        self._masking = _derived(data_key, b"cofire hashes")
        self._prefixes: dict[str, bytes] = {}
        self._masked: dict[int, int] = {}
        self._unmasked: dict[int, int] = {}

    def _context(self, column: str, row: tuple[Any, ...]) -> bytes:
        prefix = self._prefixes.get(column)
        if prefix is None:
            prefix = self._prefixes[column] = f"{self.place}{column} ".encode()
        if len(row) == 1 and type(row[0]) is int:
            return prefix + b"%d" % row[0]
        return prefix + b" ".join(
            part.hex().encode() if isinstance(part, bytes) else b"%d" % part for part in row
        )

    def seal(self, value: bytes, column: str, row: tuple[Any, ...]) -> bytes:
        """`column` is "table.column"; `row` what tells rows of the table and space apart."""
        nonce = os.urandom(_NONCE)
        return nonce + self._aead.encrypt(nonce, value, self._context(column, row))

    def open(self, sealed: bytes, column: str, row: tuple[Any, ...]) -> bytes:
        """The reverse of `seal`. Raises StoreCorruptError."""
        if not isinstance(sealed, bytes) or len(sealed) < _NONCE + _TAG:
            raise _changed(column, row)
        try:
            context = self._context(column, row)
            return self._aead.decrypt(sealed[:_NONCE], sealed[_NONCE:], context)
        except self._invalid as exc:
            raise _changed(column, row) from exc

    def seal_text(self, text: str, column: str, row: tuple[Any, ...]) -> str:
        """As `seal`, for columns of text; what says that there is nothing stays as it is."""
        if text in EMPTY:
            return text
        sealed = self.seal(text.encode(), column, row)
        return binascii.b2a_base64(sealed, newline=False).decode("ascii")

    def open_text(self, sealed: str, column: str, row: tuple[Any, ...]) -> str:
        """The reverse of `seal_text`. Raises StoreCorruptError."""
        if sealed in EMPTY:
            return sealed
        try:
            raw = binascii.a2b_base64(sealed, strict_mode=True)
        except (binascii.Error, ValueError, TypeError) as exc:
            raise _changed(column, row) from exc
        return self.open(raw, column, row).decode()

    def mask(self, number: int) -> int:
        """A signed 64-bit hash as it is stored: a permutation that keeps 0."""
        if number == 0:
            return 0
        return self._walked(number, self._masked, self._permuted)

    def unmask(self, number: int) -> int:
        """The reverse of `mask`."""
        if number == 0:
            return 0
        return self._walked(number, self._unmasked, self._restored)

    def _walked(self, number: int, known: dict[int, int], step: Callable[[int], int]) -> int:
        found = known.get(number)
        if found is None:
            value = step(number & _WHOLE) or step(0)  # one step more where 0 would come out
            found = value - _WHOLE - 1 if value & _SIGN else value
            if len(known) >= _MASKS_KEPT:
                known.clear()
            known[number] = found
        return found

    def _permuted(self, value: int) -> int:
        left, right = value >> 32, value & _HALF
        for turn in range(_ROUNDS):
            left, right = right, left ^ self._round(turn, right)
        return left << 32 | right

    def _restored(self, value: int) -> int:
        left, right = value >> 32, value & _HALF
        for turn in reversed(range(_ROUNDS)):
            left, right = right ^ self._round(turn, left), left
        return left << 32 | right

    def _round(self, turn: int, half: int) -> int:
        data = turn.to_bytes(1, "little") + half.to_bytes(4, "little")
        digest = hashlib.blake2b(data, key=self._masking, digest_size=4).digest()
        return int.from_bytes(digest, "little")


def _changed(column: str, row: tuple[Any, ...]) -> StoreCorruptError:
    own = ", ".join(part.hex() if isinstance(part, bytes) else str(part) for part in row)
    return StoreCorruptError(
        f"{column} of {own}: the encrypted content was changed, or is another row's; restore a "
        "backup"
    )


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """The key of a space that nothing was read from yet."""

    tenant: int
    where: str
    entry: Mapping[str, str]


class Vault:
    """The keys of one open store's encrypted spaces, as far as they were met.

    `master` unwraps and wraps them; `encrypt_new` says whether a space that is made is encrypted.
    Raises ConfigurationError for that without a master key, MissingExtraError.
    """

    def __init__(self, master: bytes | None = None, *, encrypt_new: bool = False) -> None:
        if encrypt_new and master is None:
            raise ConfigurationError(
                "an encrypted space needs a key: set COFIRE_ENCRYPTION_KEY_FILE (or "
                "COFIRE_ENCRYPTION_KEY) to 32 random bytes in base64"
            )
        self._master = None if master is None else _aead(master)
        self._encrypt_new = encrypt_new
        self._refs: set[object] = set()
        self.keys: dict[tuple[int, int], SpaceKey | _Wrapped] = {}
        """By the ids of tenant and space; empty as long as no encrypted space was met, so that
        whoever has none pays nothing."""

    def wants(self, ref: object) -> bool:
        """Whether a space made under this name is to be encrypted: as chosen, and where one of
        this name was (it was forgotten whole, and its successor must not be less safe)."""
        return self._encrypt_new or ref in self._refs

    def make(self, tenant: int, space: int, ref: object) -> dict[str, str]:
        """A key for a new space; returns what its settings must say. Raises ConfigurationError."""
        data_key, id = os.urandom(KEY_BYTES), os.urandom(8).hex()
        entry = _wrapped(self._require_master(), data_key, tenant, space, id)
        self.keys[tenant, space] = SpaceKey(data_key, tenant, space, id)
        self._refs.add(ref)
        return entry

    def require_master(self) -> None:
        """Raises ConfigurationError if there is no key to put new ones under."""
        self._require_master()

    def admit(
        self, tenant: int, space: int, entry: Mapping[str, str] | None, ref: object, *, strict: bool
    ) -> bool:
        """Takes note of whether a space is encrypted, by the entry of its settings; returns it.

        Raises ConfigurationError if its key cannot be had and `strict`; else whoever reads or
        writes content of it gets that error. Raises StoreCorruptError if it was encrypted before
        and is no longer.
        """
        if entry is None:
            if (tenant, space) in self.keys:  # nothing may be written to it in the clear
                raise StoreCorruptError(
                    f"{ref}: this space was encrypted, and its key is gone from the store (or "
                    "another process restored a backup of another store): open the memory again"
                )
            return False
        known = self.keys.get((tenant, space))
        if not isinstance(known, SpaceKey) or known.id != entry.get("id"):
            self.keys[tenant, space] = _Wrapped(tenant, str(ref), entry)
        if strict:
            self.key(tenant, space)
        self._refs.add(ref)
        return True

    def key(self, tenant: int, space: int) -> SpaceKey | None:
        """The key of a space, None if it is not encrypted. Raises ConfigurationError."""
        found = self.keys.get((tenant, space))
        if isinstance(found, _Wrapped):
            try:
                data_key = self._unwrapped(found.entry, found.tenant, space)
            except ConfigurationError as exc:
                raise ConfigurationError(f"{found.where}: {exc}") from exc
            found = SpaceKey(data_key, found.tenant, space, found.entry["id"])
            self.keys[tenant, space] = found
        return found

    def locked(self, tenant: int, space: int) -> str | None:
        """Why a space's content cannot be had; None if it can."""
        try:
            self.key(tenant, space)
        except ConfigurationError as exc:
            return str(exc)
        return None

    def rewrapped(
        self, new: bytes, entry: Mapping[str, str], tenant: int, space: int
    ) -> dict[str, str]:
        """The entry of a space's settings under another master key. Raises ConfigurationError."""
        data_key = self._unwrapped(entry, tenant, space)
        return _wrapped(_aead(new), data_key, tenant, space, entry["id"])

    def use(self, master: bytes) -> None:
        """From now on this master key."""
        self._master = _aead(master)

    def clear(self) -> None:
        """Everything may have changed (a restore): the spaces are met anew."""
        self.keys.clear()

    def _require_master(self) -> AESGCM:
        if self._master is None:
            raise ConfigurationError(
                "this space is encrypted and no key is set: set COFIRE_ENCRYPTION_KEY_FILE (or "
                "COFIRE_ENCRYPTION_KEY) to the key that it was made with"
            )
        return self._master

    def _unwrapped(self, entry: Mapping[str, str], tenant: int, space: int) -> bytes:
        master = self._require_master()
        from cryptography.exceptions import InvalidTag

        try:
            wrapped = base64.b64decode(entry["key"], validate=True)
            context = _wrapping(tenant, space, entry["id"])
            return master.decrypt(wrapped[:_NONCE], wrapped[_NONCE:], context)
        except (InvalidTag, KeyError, ValueError, TypeError) as exc:
            raise ConfigurationError(
                "this space is encrypted under another key than the one that is set (or its own "
                "key was changed in the file)"
            ) from exc


def _wrapping(tenant: int, space: int, id: str) -> bytes:
    return f"cofire space key {tenant} {space} {id}".encode()


def _wrapped(master: AESGCM, data_key: bytes, tenant: int, space: int, id: str) -> dict[str, str]:
    nonce = os.urandom(_NONCE)
    sealed = nonce + master.encrypt(nonce, data_key, _wrapping(tenant, space, id))
    return {"id": id, "key": base64.b64encode(sealed).decode("ascii")}


def entry_of(settings: str) -> Mapping[str, str] | None:
    """What a space's settings, as stored, say of its key."""
    if f'"{SETTING}"' not in settings:
        return None
    entry: Mapping[str, str] | None = json.loads(settings).get(SETTING)
    return entry
