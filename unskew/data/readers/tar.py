"""Tar shards as webdataset writes them: the members of a sample follow one another and share a name up to the first dot.

`000017.jpg` is the picture; `000017.cls` the class, `000017.json` columns, `000017.txt` a column `text`. Nothing is ever unpacked: a
shard is indexed once, and pictures are read from their places in it. A shard with links, devices or names that lead elsewhere is
refused.
"""

import io
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from unskew.core.errors import UserError
from unskew.data.manifest import Look, look_at
from unskew.data.readers.listing import EXTENSIONS

LARGEST_TEXT = 2**20  # bytes of a label or of columns
BLOCK = 512  # bytes
_PICTURES = {ending.removeprefix(".") for ending in EXTENSIONS}


@dataclass
class Sample:
    """A picture inside a shard: its name, where it begins, its bytes, what its header says, and its columns."""

    key: str
    member: str = ""
    place: int = 0
    size: int = 0
    look: Look = field(default_factory=Look)
    columns: dict[str, Any] = field(default_factory=dict)


def samples(file: IO[bytes], where: str) -> Iterator[Sample]:
    """The samples of a shard in order, from one pass over it."""
    seen: set[str] = set()
    sample: Sample | None = None
    for member in _members(file, where):
        key, ending = _parts(member.name)
        if sample is None or key != sample.key:
            if sample is not None:
                yield _whole(sample, where)
            if key in seen:
                raise UserError(
                    f"{where}: the members of sample {key!r} do not follow one another; write the shard again in order"
                )
            seen.add(key)
            sample = Sample(key)
        _add(sample, member, ending, file, where)
    if sample is not None:
        yield _whole(sample, where)


def _whole(sample: Sample, where: str) -> Sample:
    if not sample.member:
        raise UserError(
            f"{where}: sample {sample.key!r} has no picture; its name must end in one of {', '.join(sorted(_PICTURES))}"
        )
    return sample


def _parts(name: str) -> tuple[str, str]:
    """What a member's sample is called, and the rest of its name.

    >>> _parts("train/000017.seg.png")
    ('train/000017', 'seg.png')
    """
    folder, slash, base = name.rpartition("/")
    stem, _, ending = base.partition(".")
    return f"{folder}{slash}{stem}", ending.lower()


def _members(file: IO[bytes], where: str) -> Iterator[tarfile.TarInfo]:
    """The regular files of an archive; raises for anything that is not one, and for an archive that was cut."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(2) == b"\x1f\x8b":
        raise UserError(f"{where} is compressed; pictures in it cannot be found without unpacking it all: gunzip it")
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                archive.members = []  # type: ignore[attr-defined,unused-ignore]  # a shard may have millions: keep none
                if member.isdir():
                    continue
                _check(member, where)
                if member.offset_data + member.size > size:
                    raise UserError(
                        f"{where} was cut: {member.name!r} should end at byte {member.offset_data + member.size} of {size}"
                    )
                base = member.name.rpartition("/")[2]
                if not base.startswith((".", "__")):
                    yield member
            file.seek(archive.offset)
            if file.read(BLOCK) != bytes(BLOCK):
                raise UserError(f"{where} was cut or is damaged at byte {archive.offset}; write or fetch it again")
    except (tarfile.TarError, EOFError, UnicodeError, OverflowError) as error:
        raise UserError(
            f"{where} is no tar archive, or was cut ({' '.join(str(error).split())}); write or fetch it again"
        ) from None


def _check(member: tarfile.TarInfo, where: str) -> None:
    kind = "a link" if member.issym() or member.islnk() else "" if member.isreg() and not member.issparse() else "no plain file"
    if kind:
        raise UserError(f"{where}: {member.name[:100]!r} is {kind}; a shard holds plain files only")
    if member.name.startswith(("/", "\\")) or ".." in member.name.replace("\\", "/").split("/") or "\0" in member.name:
        raise UserError(f"{where}: the name {member.name[:100]!r} leads out of the shard; write it with plain names")
    try:
        member.name.encode()
    except UnicodeEncodeError:
        raise UserError(f"{where}: the name {member.name[:100]!a} is not UTF-8; rename it") from None


def _add(sample: Sample, member: tarfile.TarInfo, ending: str, file: IO[bytes], where: str) -> None:
    if ending in _PICTURES or (not sample.member and ending.rpartition(".")[2] in _PICTURES):
        better = not sample.member or _parts(sample.member)[1] not in _PICTURES  # 1.jpg rather than 1.seg.png
        if better:
            file.seek(member.offset_data)
            content = io.BytesIO(file.read(member.size))
            sample.member, sample.place, sample.size, sample.look = member.name, member.offset_data, member.size, look_at(content)
    elif ending in ("cls", "json", "txt"):
        if member.size > LARGEST_TEXT:
            raise UserError(f"{where}: {member.name!r} has {member.size} bytes; labels and columns may have {LARGEST_TEXT}")
        file.seek(member.offset_data)
        _columns(sample, member.name, ending, file.read(member.size), where)


def _columns(sample: Sample, name: str, ending: str, raw: bytes, where: str) -> None:
    try:
        text = raw.decode().strip()
        loaded = json.loads(text) if ending == "json" else text
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: {name!r} cannot be read ({' '.join(str(error).split())[:100]})") from None
    if ending == "json":
        if not isinstance(loaded, dict):
            raise UserError(f"{where}: {name!r} holds {type(loaded).__name__}, not an object with columns")
        plain = {str(key): _value(value) for key, value in loaded.items()}
        sample.columns = {**sample.columns, **plain}
    elif ending == "cls":
        sample.columns.setdefault("label", text)
    else:
        sample.columns["text"] = text


def _value(value: Any) -> Any:
    """A value as a column can hold it: text, a number, or a list of them; anything deeper as JSON."""
    simple = (str, int, float, bool, type(None))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, simple) or (isinstance(value, list) and all(isinstance(v, str) for v in value)):
        return value
    return json.dumps(value)
