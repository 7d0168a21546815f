"""A file beside the store from which an active graph opens fast. Never trusted, always rebuildable.

Layout: 8 bytes magic, 4 bytes header length, header (JSON: format, key, revision, arrays, digest
of the payload), 32 bytes digest of all that, padding, then the arrays, each at a multiple of 64
bytes. The payload's digest is BLAKE2b over the wrapping uint64 sums of its 4 KiB blocks: any
changed byte, lost block or moved block shows, at memory speed.

It holds no text: vectors, hashes, numbers and times. Deleting memories must delete it
(`delete_sidecar`), as it keeps what it was saved with.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofire.graph.active import ActiveGraph
from cofire.graph.links import LinkLists, Links, sort_links
from cofire.graph.postings import Lists, Postings
from cofire.graph.rows import Interned
from cofire.graph.table import NumberMap, Table
from cofire.graph.vectors import Projection

FORMAT = 3
"""Raised with every change of layout or meaning; files of other formats are ignored."""

_MAGIC = b"COFIREAG"
_DIGEST = 32
_ALIGN = 64
_BLOCK = 4096
_HEADER_LIMIT = 1 << 20
_HEADROOM = 8  # columns are read into arrays with 1 / 8 free rows: appending need not copy them

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarKey:
    """What a file must have been made for: the space's uid, the embedding model's identity."""

    space: str
    model: str
    dimension: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """A graph, or the `reason` why there is none ("missing", "damaged: …", "other model" …)."""

    graph: ActiveGraph | None
    reason: str = ""


class _DamagedError(Exception):
    """The file is not what it says it is."""


# -- saving --------------------------------------------------------------------------------------


def save_sidecar(path: Path, graph: ActiveGraph, key: SidecarKey) -> None:
    """Write `graph` to `path` atomically: a reader sees the old file, the new one, or none.

    Raises:
        OSError: the file cannot be written (disk full, no permission); the old one is kept.
    """
    if graph.dead:
        graph = graph.compacted()
    arrays = _to_arrays(graph)
    entries, offset = {}, 0
    for name, array in arrays.items():
        entries[name] = [array.dtype.str, list(array.shape), offset]
        offset += -(-array.nbytes // _ALIGN) * _ALIGN
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for array in arrays.values():
        _feed(digest, array)
    header = {
        "format": FORMAT,
        "key": asdict(key),
        "revision": graph.revision,
        "projection": None if graph.projection is None else graph.projection.version,
        "byteorder": sys.byteorder,
        "size": graph.size,
        "arrays": entries,
        "payload": offset,
        "digest": digest.hexdigest(),
    }
    _write_atomically(path, _pack_header(header), arrays)


def _pack_header(header: Mapping[str, Any]) -> bytes:
    text = json.dumps(header).encode()
    head = _MAGIC + len(text).to_bytes(4, "little") + text
    head += hashlib.blake2b(head, digest_size=_DIGEST).digest()
    return head + bytes(-len(head) % _ALIGN)


def _write_atomically(path: Path, head: bytes, arrays: Arrays) -> None:
    descriptor, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(head)
            for array in arrays.values():
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                file.write(bytes(-array.nbytes % _ALIGN))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # other systems cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def delete_sidecar(path: Path) -> None:
    """Remove the file and any temporary file a killed process left beside it. A folder of that
    name is not ours, and stays."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
    for leftover in path.parent.glob(f"{path.name}.*.tmp"):
        leftover.unlink(missing_ok=True)


def _feed(digest: Any, array: NDArray[Any]) -> None:
    """Add an array's bytes to the digest as wrapping sums of blocks, and its exact tail."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(data) // _BLOCK * _BLOCK
    blocks = data[:whole].view(np.uint64).reshape(-1, _BLOCK // 8)
    digest.update(blocks.sum(axis=1, dtype=np.uint64).tobytes())
    digest.update(data[whole:].tobytes())
    digest.update(len(data).to_bytes(8, "little"))


# -- loading -------------------------------------------------------------------------------------


def load_sidecar(path: Path, key: SidecarKey, projection: Projection | None) -> Loaded:
    """The graph saved at `path`, if it was saved for `key` and is whole; else the reason.

    It is at the revision it was saved at: apply what changed since. `projection` is the space's
    now; if the file was made with another version, the coarse scan is computed anew.
    """
    try:
        with _open_file(path) as file:
            header, start = _read_header(file)
            reason = _mismatch(header, key)
            if reason:
                return Loaded(None, reason)
            arrays = _read_arrays(file, header, start, key.dimension)
            return Loaded(_from_arrays(header, arrays, key.dimension, projection))
    except FileNotFoundError:
        return Loaded(None, "missing")
    except _DamagedError as damage:
        return Loaded(None, f"damaged: {damage}")
    except (
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:  # a good digest, but no sense
        return Loaded(None, f"damaged: the header makes no sense ({error})")
    except OSError as error:
        return Loaded(None, f"unreadable: {error.strerror or error}")


def _open_file(path: Path) -> BufferedReader:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise OSError("this is not a regular file")
    return path.open("rb")


def _read_header(file: BufferedReader) -> tuple[dict[str, Any], int]:
    prefix = file.read(len(_MAGIC) + 4)
    if len(prefix) < len(_MAGIC) + 4 or not prefix.startswith(_MAGIC):
        raise _DamagedError("not a graph file")
    length = int.from_bytes(prefix[len(_MAGIC) :], "little")
    if length > _HEADER_LIMIT:
        raise _DamagedError("the header is too long")
    text = file.read(length)
    digest = file.read(_DIGEST)
    if hashlib.blake2b(prefix + text, digest_size=_DIGEST).digest() != digest:
        raise _DamagedError("the header is not what was written")
    start = len(prefix) + length + _DIGEST
    header = json.loads(text)
    if not isinstance(header, dict):
        raise _DamagedError("the header is no object")
    return header, start + -start % _ALIGN


def _mismatch(header: Mapping[str, Any], key: SidecarKey) -> str:
    if header["format"] != FORMAT:
        return f"format {header['format']}, this version reads {FORMAT}"
    if header["byteorder"] != sys.byteorder:
        return "made on a machine of another byte order"
    _require_sense(header)
    for name, value in asdict(key).items():
        if header["key"].get(name) != value:
            return f"other {name}"
    return ""


def _require_sense(header: Mapping[str, Any]) -> None:
    """Refuses a header of this format whose fields are not of their kind."""
    for name in ("revision", "size", "payload"):
        if type(header[name]) is not int or not 0 <= header[name] < 2**63:
            raise _DamagedError(f"{name} is no count")
    if header["projection"] is not None and type(header["projection"]) is not int:
        raise _DamagedError("projection is no version")
    for name in ("key", "arrays"):
        if not isinstance(header[name], dict):
            raise _DamagedError(f"{name} is no object")


def _require_fitting(name: str, entry: Any, like: NDArray[Any], size: int) -> None:
    """Refuses what says of an array that it is not `like` that of an empty graph, but for its
    length; columns have `size` rows, and how wide the scan is, is for the projection to say."""
    code, shape, offset = entry
    whole = all(type(part) is int and part >= 0 for part in (*shape, offset))
    if not whole or np.dtype(code) != like.dtype or len(shape) != like.ndim:
        raise _DamagedError(f"{name} cannot be an array of this file")
    wide = shape[1:] == list(like.shape[1:]) or (
        name == "row.scan" and 1 <= shape[1] <= like.shape[1]
    )
    column = name.startswith("row.") or name == "forward.end"
    if not wide or (column and shape[0] != size):
        raise _DamagedError(f"{name} cannot be an array of this file")


def _read_arrays(
    file: BufferedReader, header: Mapping[str, Any], start: int, dimension: int
) -> Arrays:
    payload = header["payload"]
    if os.fstat(file.fileno()).st_size != start + payload:
        raise _DamagedError("truncated, or longer than it was written")
    like = _to_arrays(ActiveGraph.empty(dimension))
    if header["arrays"].keys() - {"row.scan"} != like.keys() - {"row.scan"}:
        raise _DamagedError("columns are missing, or there are others")
    digest = hashlib.blake2b(digest_size=_DIGEST)
    arrays: Arrays = {}
    for name, entry in header["arrays"].items():
        _require_fitting(name, entry, like[name], header["size"])
        code, shape, offset = entry
        dtype = np.dtype(code)
        if offset > payload - math.prod(shape) * dtype.itemsize:
            raise _DamagedError(f"{name} cannot be an array of this file")
        growing = name.startswith(("row.", "forward."))
        spare = shape[0] // _HEADROOM + 64 if growing else 0
        array = np.empty((shape[0] + spare, *shape[1:]), dtype)
        wanted = array[: shape[0]]
        file.seek(start + offset)
        read = file.readinto(wanted.reshape(-1).view(np.uint8).data) if wanted.nbytes else 0
        if read != wanted.nbytes:
            raise _DamagedError("truncated")
        _feed(digest, wanted)
        arrays[name] = array
    if digest.hexdigest() != header["digest"]:
        raise _DamagedError("the content is not what was written")
    return arrays


# -- graph ↔ arrays ------------------------------------------------------------------------------

_POSTINGS = ("terms", "concepts", "facets")
_LISTS = ("keys", "offsets", "rows", "counts")
_LINKS = ("source", "target", "type", "strength", "when", "out_ends", "in_order", "in_ends")


def _to_arrays(graph: ActiveGraph) -> Arrays:
    """Every array of a graph without dead rows, postings and links merged."""
    arrays: Arrays = {f"row.{name}": graph.table[name] for name in graph.table.names}
    arrays["numbers"] = graph.numbers.array
    for name in _POSTINGS:
        postings: Postings = getattr(graph, name)
        lists = postings.merged()
        for part in _LISTS:
            arrays[f"{name}.{part}"] = getattr(lists, part)
    forward = graph.concepts.forward_arrays()
    if forward is not None:
        arrays["forward.key"], arrays["forward.count"], arrays["forward.end"] = forward
    links = sort_links(*graph.links.arrays(graph.numbers.array))
    for part in _LINKS:
        arrays[f"links.{part}"] = getattr(links, part)
    arrays["speakers"] = np.array(graph.speakers.hashes(), np.uint64)
    arrays["sessions"] = np.array(graph.sessions.hashes(), np.uint64)
    return arrays


def _from_arrays(
    header: Mapping[str, Any], arrays: Arrays, dimension: int, projection: Projection | None
) -> ActiveGraph:
    size = header["size"]
    graph = ActiveGraph.empty(dimension, projection)
    columns = {name[4:]: array for name, array in arrays.items() if name.startswith("row.")}
    graph.table = Table.full(columns, size)
    graph.numbers = NumberMap(Table.full({"row": arrays["numbers"]}, len(arrays["numbers"])))
    forward = Table.full(
        {"key": arrays["forward.key"], "count": arrays["forward.count"]},
        header["arrays"]["forward.key"][1][0],
    )
    ends = Table.full({"end": arrays["forward.end"]}, size)
    for name in _POSTINGS:
        lists = Lists(*(arrays[f"{name}.{part}"] for part in _LISTS))
        with_forward = name == "concepts"
        postings = Postings.adopt(
            lists, forward if with_forward else None, ends if with_forward else None
        )
        setattr(graph, name, postings)
    graph.links = Links.adopt(LinkLists(*(arrays[f"links.{part}"] for part in _LINKS)))
    graph.speakers = Interned(arrays["speakers"].tolist())
    graph.sessions = Interned(arrays["sessions"].tolist())
    lengths = graph.table["length"]
    graph.documents = int(np.count_nonzero(lengths > 0))
    graph.total_length = int(lengths.sum(dtype=np.int64))
    graph.revision = header["revision"]
    version = None if projection is None else projection.version
    return graph if header["projection"] == version else graph.with_projection(projection)
