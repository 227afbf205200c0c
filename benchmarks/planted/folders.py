"""The folders: 30 kinds at two alignments, and 40 clean sets; each drawn from its own seed and written as class folders of files."""

import dataclasses
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.planted.kinds import KINDS, Kind, Shot
from benchmarks.planted.photos import BASES

ALIGNMENTS = (1.0, 0.85)
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # of the larger class, in clean sets
CONTENT = (  # classes that differ in what they show
    ("fruit", ("Apple", "Melon")), ("cifar", ("ship", "horse")), ("cifar", ("frog", "airplane")), ("crops", ("temple", "flower")),
    ("cifar", ("automobile", "deer")), ("fruit", ("Apple", "Melon")), ("cifar", ("truck", "bird")), ("crops", ("temple", "flower")),
    ("cifar", ("cat", "ship")), ("cifar", ("dog", "airplane")),
)  # fmt: skip
NUISANCES = ("brightness +6", "tint", "JPEG quality", "grey corner mark", "slight blur", "shot noise", "EXIF make")


@dataclass(frozen=True)
class Folder:
    """One set to write and audit."""

    name: str
    group: str  # planted, clean, content or names
    base: str
    rows: int
    kind: Kind | None = None
    alignment: float = 0.0
    share: float = 0.5  # of class 0
    classes: tuple[str, ...] = ()  # what the classes show; empty: classes are drawn by lot


def plan() -> list[Folder]:
    """Every folder, planted ones first."""
    bases = list(BASES)
    found = []
    for a, alignment in enumerate(ALIGNMENTS):
        for k, kind in enumerate(KINDS):
            base = bases[(k + a) % len(bases)]
            name = f"{kind.name} {100 * alignment:.0f}"
            found.append(
                Folder(
                    name, "planted", base, 400 + 100 * (k % 3), kind, alignment, 0.5, ("cat", "dog") if base == "cifar" else ()
                )
            )
    found += [Folder(f"clean {k}", "clean", bases[k % 3], 400 + 100 * (k % 3), share=SHARES[k % 6]) for k in range(20)]
    for k, (base, classes) in enumerate(CONTENT):
        found.append(Folder(f"content {k}", "content", base, 500, share=SHARES[k % 6], classes=classes))
    found += [Folder(f"names {k}", "names", bases[k % 3], 400 + 100 * (k % 3), share=SHARES[(k + 3) % 6]) for k in range(10)]
    return found


def exact(rows: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """Booleans of which exactly round(rows * share) are True."""
    return rng.permutation(rows) < round(rows * share)


def write(folder: Folder, root: Path) -> Path:
    """The files of a folder; nothing is done if it was written before."""
    place = root / folder.name.replace(" ", "-").replace("+", "")
    if (place / "done").exists():
        return place
    rng = np.random.default_rng(zlib.crc32(folder.name.encode()))
    pictures, y = _classes(folder, rng)
    aligned = np.zeros(len(y), dtype=bool)
    for c in (0, 1):
        aligned[y == c] = exact(int((y == c).sum()), folder.alignment, rng)
    on = np.where(aligned, y == 1, y == 0)
    numbers = rng.permutation(len(y))
    for k, picture in enumerate(pictures):
        shot = Shot(picture.copy())
        if folder.kind is not None:
            folder.kind.change(shot, bool(on[k]), rng)
        else:
            _nuisances(shot, rng, folder.group == "content")
        home = place / f"class_{y[k]}"
        name = f"IMG_{numbers[k]:04d}"
        if folder.group == "names":
            home = home / f"session_{y[k]}{numbers[k] % 4}"
            name = f"class_{y[k]}_{numbers[k]:04d}"
        home.mkdir(parents=True, exist_ok=True)
        shot.image.save(home / f"{name}.{shot.suffix}", **shot.save)
    (place / "done").touch()
    return place


def _classes(folder: Folder, rng: np.random.Generator) -> tuple[list[Image.Image], np.ndarray]:
    """Pictures and their classes: what they show, or drawn by lot."""
    if not folder.classes:
        pictures, _ = BASES[folder.base](folder.rows, rng)
        return pictures, 1 - exact(len(pictures), folder.share, rng).astype(int)
    pictures, shown = BASES[folder.base](3 * folder.rows, rng, folder.classes)
    y = np.array([folder.classes.index(name) for name in shown])
    wanted = (round(folder.rows * folder.share), folder.rows - round(folder.rows * folder.share))
    kept = np.sort(np.concatenate([np.flatnonzero(y == c)[:n] for c, n in enumerate(wanted)]))
    return [pictures[k] for k in kept], y[kept]


def _nuisances(shot: Shot, rng: np.random.Generator, many: bool) -> None:
    """Each of several nuisances in half of the pictures, whatever their class; sets without content have one of them."""
    for kind in KINDS:
        if kind.name in NUISANCES and (many or kind.name in ("brightness +6", "JPEG quality")):
            before = dataclasses.replace(shot, save=dict(shot.save))
            kind.change(shot, bool(rng.random() < 0.5), rng)
            shot.save = {**before.save, **shot.save}
