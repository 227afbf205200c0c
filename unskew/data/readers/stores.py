"""Where shards and pictures lie: files of this machine, or objects under s3:// and gs://, read through fsspec. Needs unskew[remote].

Nothing is held open between two calls, so that worker processes may be forked at any time. An endpoint is named by the environment
(AWS_ENDPOINT_URL), never by data; nothing is ever written to a bucket.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from unskew.core.errors import UserError

CLIENTS = {"s3": "s3fs", "gs": "gcsfs"}  # by protocol, the package that fsspec needs; gs:// is untested
CONNECT, READ, ATTEMPTS = 5, 20, 2  # seconds to connect, seconds without a byte, and attempts, until a store counts as silent
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """A file or an object: its size in bytes, and what changes with its content: a time in nanoseconds, a tag of the store."""

    address: str
    size: int
    mtime: int
    tag: str = ""


def protocol_of(text: str) -> str:
    """The protocol of an address; empty for a path.

    >>> protocol_of("s3://bucket/photos"), protocol_of("photos"), protocol_of("toy:rows=10")
    ('s3', '', '')
    """
    found = _ADDRESS.match(text)
    return found[1].lower() if found else ""


def plain_path(text: str) -> str:
    """The path of a file:// address; any other text as it is. Raises for a protocol that is not read.

    >>> plain_path("file:///data/my%20photos")
    '/data/my photos'
    """
    kind = protocol_of(text)
    if kind == "file":
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise UserError(
                f"{text}: a file:// address has three slashes, file:///folder; {parts.netloc!r} would be another machine"
            )
        return unquote(parts.path)
    if kind and kind not in CLIENTS:
        raise UserError(f"{text}: cannot read {kind}://; allowed: file://, s3://, gs://, or a path")
    return text


def items_below(address: str) -> list[Item]:
    """All objects whose names begin with this address and a slash, or the object itself, sorted by name."""
    place = address.rstrip("/")
    with reaching(address):
        store = _store(address)
        found = store.find(place, detail=True)
    listed = [_item(protocol_of(address), name, about) for name, about in found.items() if about.get("type") == "file"]
    if not listed:
        raise UserError(f"{address}: there is nothing; check the bucket and the folder")
    return sorted(listed, key=lambda item: item.address)


def _item(protocol: str, name: str, about: dict[str, Any]) -> Item:
    changed = about.get("LastModified") or about.get("mtime") or about.get("updated") or 0
    if isinstance(changed, str):
        changed = datetime.fromisoformat(changed)
    mtime = int(changed.timestamp() * 1e9) if isinstance(changed, datetime) else int(float(changed) * 1e9)
    return Item(f"{protocol}://{name}", int(about.get("size") or 0), mtime, str(about.get("ETag") or about.get("etag") or ""))


def item_of(path: str) -> Item:
    """A file of this machine."""
    known = os.stat(path)
    return Item(path, known.st_size, known.st_mtime_ns)


def read_ranges(addresses: Sequence[str], starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
    """These bytes of each; all requests to a bucket are made at once. Raises if any is shorter than it should be."""
    remote = [k for k, address in enumerate(addresses) if protocol_of(address)]
    pieces = [b"" if protocol_of(a) else _from_file(a, s, n) for a, s, n in zip(addresses, starts, lengths, strict=True)]
    if remote:
        with reaching(addresses[remote[0]]):
            store = _store(addresses[remote[0]])
            ends = [starts[k] + lengths[k] for k in remote]
            got = store.cat_ranges([addresses[k] for k in remote], [starts[k] for k in remote], ends, on_error="raise")
        for k, piece in zip(remote, got, strict=True):
            pieces[k] = bytes(piece)
    short = next((k for k, piece in enumerate(pieces) if len(piece) < lengths[k]), None)
    if short is not None:
        raise UserError(f"{addresses[short]} has become shorter since it was indexed; run the same command again")
    return pieces


def _from_file(path: str, start: int, length: int) -> bytes:
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        return file.read(length)


def read_all(addresses: Sequence[str]) -> list[bytes]:
    """The whole of each of these objects, all requested at once."""
    with reaching(addresses[0]):
        store = _store(addresses[0])
        got = store.cat(list(addresses), on_error="raise")
        by_name = {store._strip_protocol(name): content for name, content in got.items()} if isinstance(got, dict) else {}
        return [bytes(by_name[store._strip_protocol(a)]) for a in addresses] if by_name else [bytes(got)]


@contextmanager
def opened(address: str) -> Iterator[IO[bytes]]:
    """A file that can be read from any place."""
    if not protocol_of(address):
        with open(address, "rb") as file:
            yield file
        return
    with reaching(address), _store(address).open(address, "rb") as file:
        yield file


@contextmanager
def reaching(address: str) -> Iterator[None]:
    """Inside, what a store answers, or that it does not, is one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{address}: {_trouble(error)}") from error


def _trouble(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200] or type(error).__name__
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, PermissionError) or "NoCredentialsError" in kinds:
        return f"the store refuses ({text}); check your credentials, or set FSSPEC_S3_ANON=true for a public bucket"
    if isinstance(error, FileNotFoundError):
        return f"there is no such bucket or object ({text})"
    silent = {
        "ConnectionError",
        "TimeoutError",
        "HTTPClientError",
        "ClientError",
        "ClientConnectorError",
        "EndpointConnectionError",
    }
    if kinds & silent or isinstance(error, (ConnectionError, TimeoutError)):
        return f"the store does not answer ({text}); check the network and AWS_ENDPOINT_URL"
    return f"the store cannot be read ({type(error).__name__}: {text})"


def _store(address: str) -> Any:
    """The client of a store; fsspec keeps one per process."""
    kind = protocol_of(address)
    try:
        import fsspec

        if kind == "s3":
            waiting = {"connect_timeout": CONNECT, "read_timeout": READ, "retries": {"total_max_attempts": ATTEMPTS}}
            store = fsspec.filesystem(kind, config_kwargs=waiting, use_listings_cache=False)
            store.retries = ATTEMPTS  # its own, around those of the client
            return store
        return fsspec.filesystem(kind, use_listings_cache=False)
    except ImportError:
        wanted = "'unskew[remote]'" if kind == "s3" else CLIENTS[kind]
        raise UserError(f"{address}: needs {CLIENTS[kind]}; pip install {wanted}") from None
