"""What was paid for is kept: replies of language models, by the content of the request.

A run has a folder. Every reply is written to `replies.jsonl` there and is on the disk before
anything else is done with it, so that the same command after a kill, at any point, asks for nothing
twice. The key is a hash of all that a reply depends on: the model's name, the prompt, the schema,
the bounds and the seed. A change of any of them is another request; a change of anything else (how
answers are scored, which arms run) uses what is there.

The file holds what a benchmark asks and what models said of it, nothing of anybody's memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from cofire.errors import InputError, StoreBusyError, StoreError
from cofire.models.generator import FINISHES, Generated, Generation, Generator

REPLIES = "replies.jsonl"
LOCK = "run.lock"


def reply_key(model: str, request: Generation) -> str:
    """The SHA-256, in hexadecimal, of all that a reply depends on."""
    schema = None if request.schema is None else dict(request.schema)
    parts = [
        model, request.system, request.user, schema,
        request.max_tokens, request.temperature, request.seed,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class RunFolder:
    """A folder that one process at a time works in; made if it is not there.

    Raises InputError where the path is no folder, StoreBusyError where another process works in
    it, StoreError where it cannot be written. The operating system lets go of the lock when the
    process ends, however it ends.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock: BinaryIO | None = (self.path / LOCK).open("a+b")
        except FileExistsError as exc:
            raise InputError(f"{self.path} is a file; --run takes a folder") from exc
        except OSError as exc:
            raise StoreError(f"cannot write to {self.path}: {exc.strerror}") from exc
        try:
            _lock(self._lock)
        except OSError as exc:
            self._lock.close()
            raise StoreBusyError(
                f"another process works in {self.path}; wait for it, or use another folder"
            ) from exc

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let another process work here; closing again does nothing."""
        if self._lock is not None:
            self._lock.close()
        self._lock = None


def _lock(file: BinaryIO) -> None:
    """Raises OSError where somebody else has it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(0)
        locking: Any = msvcrt
        locking.locking(file.fileno(), locking.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Lines:
    """A file of lines that only grows: each is on the disk when `add` returns, or, where it need
    not be `durable`, with the operating system, which a kill leaves it with.

    What a kill left of a last line is cut off on opening. May be used from several threads.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """Raises StoreError where the file cannot be read or written."""
        self.path = path
        self._durable = durable
        self._mutex = threading.Lock()
        try:
            self._file: BinaryIO = path.open("a+b", buffering=0)
            self._end = _whole_lines(self._file)
            self._file.truncate(self._end)
        except OSError as exc:
            raise StoreError(f"cannot use {path}: {exc.strerror}") from exc

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Each line with the byte that it begins at."""
        place = 0
        with self.path.open("rb") as file:
            for line in file:
                yield place, line
                place += len(line)

    def add(self, line: str) -> int:
        """Write one line, with its line feed; where it begins. Raises StoreError, and
        then nothing of it is there."""
        content = line.encode("utf-8")
        with self._mutex:
            start = self._end
            try:
                _write(self._file.fileno(), content)
                if self._durable:
                    os.fsync(self._file.fileno())
            except OSError as exc:
                with suppress(OSError):  # half a line is cut off on opening, too
                    self._file.truncate(start)
                raise StoreError(
                    f"cannot write to {self.path}: {exc.strerror}; make room and run again"
                ) from exc
            self._end += len(content)
            return start

    def at(self, place: int) -> bytes:
        """The line that begins there."""
        with self.path.open("rb") as file:
            file.seek(place)
            return file.readline()

    def close(self) -> None:
        self._file.close()


def _whole_lines(file: BinaryIO) -> int:
    """Bytes up to the end of the last whole line."""
    size = file.seek(0, os.SEEK_END)
    step = 1 << 16
    end = size
    while end > 0:
        start = max(0, end - step)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


class KeptReplies:
    """The replies of a folder. Texts stay on the disk; a place is kept in memory for each.

    `damaged` counts lines that say nothing (a failing disk: a kill leaves none); what they held is
    asked for again. May be used from several threads.
    """

    def __init__(self, folder: Path) -> None:
        self._lines = Lines(folder / REPLIES)
        self._places: dict[str, int] = {}
        self._mutex = threading.Lock()
        self.damaged = 0
        self.input_tokens = self.output_tokens = 0
        for place, line in self._lines:
            try:
                key, reply = _reply(json.loads(line))
            except (ValueError, TypeError, LookupError, AttributeError):
                self.damaged += 1
                continue
            self._count(key, place, reply)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def get(self, key: str) -> Generated | None:
        """The reply kept under the key; None: there is none."""
        place = self._places.get(key)
        return None if place is None else _reply(json.loads(self._lines.at(place)))[1]

    def put(self, key: str, model: str, reply: Generated) -> None:
        """Keep a reply; it is on the disk when this returns. Raises StoreError."""
        given = {"key": key, "model": model, **asdict(reply)}
        place = self._lines.add(json.dumps(given) + "\n")
        with self._mutex:
            self._count(key, place, reply)

    def close(self) -> None:
        self._lines.close()

    def _count(self, key: str, place: int, reply: Generated) -> None:
        self._places[key] = place
        self.input_tokens += reply.input_tokens
        self.output_tokens += reply.output_tokens


def _reply(given: Mapping[str, Any]) -> tuple[str, Generated]:
    """Raises ValueError, TypeError or LookupError for what is none."""
    key, text, finish = given["key"], given["text"], given["finish"]
    if not isinstance(key, str) or not isinstance(text, str) or finish not in FINISHES:
        raise ValueError("no reply")
    return key, Generated(
        text=text,
        finish=finish,
        input_tokens=int(given["input_tokens"]),
        output_tokens=int(given["output_tokens"]),
        seconds=float(given["seconds"]),
        attempts=int(given["attempts"]),
    )


class KeptGenerator:
    """`inner`, asked only for what is not kept. Requests that are the same and come at once are
    sent once. A call that fails is not kept."""

    def __init__(self, inner: Generator, kept: KeptReplies) -> None:
        self._inner = inner
        self._kept = kept
        self._mutex = threading.Lock()
        self._under_way: dict[str, threading.Lock] = {}

    @property
    def name(self) -> str:
        return self._inner.name

    def generate(self, request: Generation, /) -> Generated:
        key = reply_key(self.name, request)
        found = self._kept.get(key)
        if found is not None:
            return found
        with self._mutex:
            turn = self._under_way.setdefault(key, threading.Lock())
        with turn:
            found = self._kept.get(key)
            if found is None:
                found = self._inner.generate(request)
                self._kept.put(key, self.name, found)
        with self._mutex:
            self._under_way.pop(key, None)
        return found

    def close(self) -> None:
        self._inner.close()
