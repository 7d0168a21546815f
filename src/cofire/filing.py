"""Which memory a document is: a new one, one known before, one edited, or one whose file moved.

A document is looked for by its absolute path, then by its key (its path within the chosen folder,
in one spelling), then by what it says: the same text whose file is gone was moved. What another
existing file is known by is never taken for this one, so copies, and two folders with a
`README.md` each, stay apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from cofire import views
from cofire.encoding.encoder import Encoder
from cofire.interchange.documents import digest_of, document_key, same_path
from cofire.store import Store
from cofire.store.records import ItemRow, SpaceInfo
from cofire.types import Message

PLACE = ("path", "file", "digest")
"""The metadata by which a document is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """A document and the memory it is (`row` None: a new one).

    `message` is what that memory is to say, under its key to be. `changed`: it differs from what
    is stored. `source` is the document as it was read.
    """

    source: Message
    message: Message
    row: ItemRow | None
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """A document about to be filed. `faithful`: redaction leaves its metadata alone, so that they
    may be compared with those of others; else only the keys tell documents apart."""

    source: Message
    message: Message
    path: str
    file: str
    digest: str
    plain: str
    own: str
    faithful: bool


class Filing:
    """The documents of one import, told apart. `root` is the resolved folder their paths are
    relative to."""

    def __init__(self, store: Store, encoder: Encoder, root: Path) -> None:
        self._store = store
        self._encoder = encoder
        self._root = root.as_posix().rstrip("/")
        self._claimed: set[int] = set()
        self._keys: set[str] = set()

    def sort(self, space: SpaceInfo, batch: Sequence[Message]) -> list[Filed]:
        """What each document is, in their order. A memory, and a key, goes to one of them only."""
        documents = [self._document(message) for message in batch]
        by_key = self._store.find_keys(
            space, [key for each in documents for key in (each.own, each.plain)]
        )
        by_file = _grouped(
            self._store.find_metadata(
                space, "file", [each.file for each in documents if each.faithful]
            ),
            "file",
        )
        found: list[ItemRow | None] = [
            self._claim(self._at_its_place(each, by_file, by_key)) for each in documents
        ]
        lost = [
            each.digest
            for each, row in zip(documents, found, strict=True)
            if row is None and each.faithful
        ]
        by_digest = _grouped(
            self._store.find_metadata(space, "digest", lost) if lost else (), "digest"
        )
        filed = []
        for each, known in zip(documents, found, strict=True):
            row = known or self._claim(self._moved(each, by_digest))
            kept = row is not None and (row is known or row.key in (each.plain, each.own))
            key = row.key if row is not None and kept else self._free_key(each, by_key)
            filed.append(_compared(each, row, key))
        return filed

    def release(self, filed: Filed) -> None:
        """Give a document back: it was not stored, and will be sorted again."""
        if filed.row is not None:
            self._claimed.discard(filed.row.number)
        if filed.message.key is not None:
            self._keys.discard(filed.message.key)

    def _document(self, message: Message) -> _Document:
        cleaned = self._encoder.cleaned(message)
        told = (message.content, message.title, message.tags)
        if told != (cleaned.content, cleaned.title, cleaned.tags) and self._encoder.redacts:
            # A hash of what must not be kept would still tell whether a guess at it is right.
            digest = digest_of(cleaned.content, list(cleaned.tags))
            message = replace(message, metadata={**message.metadata, "digest": digest})
            cleaned = self._encoder.cleaned(message)
        path, file, digest = (str(message.metadata[name]) for name in PLACE)
        return _Document(
            source=message,
            message=cleaned,
            path=path,
            file=file,
            digest=digest,
            plain=document_key(path),
            own=document_key(path, file),
            faithful=all(cleaned.metadata[name] == message.metadata[name] for name in PLACE),
        )

    def _claim(self, row: ItemRow | None) -> ItemRow | None:
        if row is not None:
            self._claimed.add(row.number)
        return row

    def _at_its_place(
        self,
        document: _Document,
        by_file: Mapping[str, Sequence[ItemRow]],
        by_key: Mapping[str, ItemRow],
    ) -> ItemRow | None:
        """The memory of this very file, or of the same path on another machine."""
        for row in by_file.get(document.file, ()):
            if self._is_free(row) and _is_document(row):
                return row
        own, plain = by_key.get(document.own), by_key.get(document.plain)
        if own is not None and self._is_free(own):
            return own
        if (
            plain is not None
            and self._is_free(plain)
            and document.plain not in self._keys
            and self._is_same_place(plain, document)
        ):
            return plain
        return None

    def _is_free(self, row: ItemRow) -> bool:
        return row.number not in self._claimed

    def _is_same_place(self, row: ItemRow, document: _Document) -> bool:
        """Whether the memory that has the document's plain key is not another file's."""
        if not _is_document(row):
            return True
        path, file = row.metadata["path"], row.metadata["file"]
        folder = file.removesuffix("/" + path)
        if folder == self._root:
            return not _is_another(file, document.file)
        if _is_folder(folder):
            return False
        # Another machine's folder, or one that was moved: known by its name or by what it says.
        name, own = (PurePosixPath(one).name.casefold() for one in (folder, self._root))
        return name == own or row.metadata.get("digest") == document.digest

    def _moved(
        self, document: _Document, by_digest: Mapping[str, Sequence[ItemRow]]
    ) -> ItemRow | None:
        """The memory that says the same and whose file is gone; best one of the same name."""
        if not document.faithful:
            return None
        gone = [
            row
            for row in by_digest.get(document.digest, ())
            if self._is_free(row) and _is_document(row) and self._is_gone(row, document)
        ]
        name = PurePosixPath(document.path).name
        same_name = [row for row in gone if PurePosixPath(row.metadata["path"]).name == name]
        return next(iter(same_name or gone), None)

    def _is_gone(self, row: ItemRow, document: _Document) -> bool:
        here = f"{self._root}/{row.metadata['path']}"
        if os.path.lexists(row.metadata["file"]):
            return False
        return here == document.file or not os.path.lexists(here)

    def _free_key(self, document: _Document, by_key: Mapping[str, ItemRow]) -> str:
        key = document.plain
        if key in by_key or key in self._keys:
            key = document.own
        self._keys.add(key)
        return key


def _is_document(row: ItemRow) -> bool:
    """Whether the memory was made of a document and says truly where that was."""
    path, file, digest = (row.metadata.get(name) for name in PLACE)
    if not (isinstance(path, str) and isinstance(file, str) and isinstance(digest, str)):
        return False
    key = row.key or ""
    plain = document_key(path)
    return file.endswith("/" + path) and (key == plain or key.startswith(plain + "#"))


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:  # it may not be looked into, so something is there
        return True


def _is_another(file: str, other: str) -> bool:
    """Whether `file` is there and is not `other` under another name."""
    try:
        return file != other and os.path.lexists(file) and not Path(file).samefile(other)
    except OSError:
        return True


def _compared(document: _Document, row: ItemRow | None, key: str | None) -> Filed:
    """What the memory is to say: what the file says, and else what it said before."""
    cleaned = document.message
    if row is None:
        fresh = replace(document.source, key=key)
        return Filed(source=document.source, message=fresh, row=None, changed=True)
    former = views.message(row)
    path, digest = row.metadata.get("path"), row.metadata.get("digest")
    edited = digest != cleaned.metadata["digest"]
    if not document.faithful and digest == cleaned.metadata["digest"]:
        edited = former.content != cleaned.content  # a redacted digest tells nothing
    in_place = row.metadata.get("file") == cleaned.metadata["file"] or (
        isinstance(path, str) and same_path(path, str(cleaned.metadata["path"]))
    )
    message = replace(former, key=key, metadata=_metadata(row, document))
    source = document.source
    if edited:
        message = replace(
            message,
            content=source.content,
            title=source.title,
            tags=source.tags,
            time=former.time if source.time is None else source.time,
        )
    elif isinstance(path, str) and former.title == PurePosixPath(path).stem:
        message = replace(message, title=source.title)
    return Filed(source=document.source, message=message, row=row, changed=edited or not in_place)


def _metadata(row: ItemRow, document: _Document) -> dict[str, object]:
    """The memory's own, and where the document is now; within another root it keeps the path
    that goes with its key."""
    place = {name: document.source.metadata[name] for name in PLACE}
    if row.metadata.get("file") == document.file and "path" in row.metadata:
        del place["path"]
    return {**row.metadata, **place}


def _grouped(rows: Iterable[ItemRow], name: str) -> dict[str, list[ItemRow]]:
    found: dict[str, list[ItemRow]] = {}
    for row in rows:
        found.setdefault(row.metadata[name], []).append(row)
    return found
