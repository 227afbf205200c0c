"""Features of the rows, computed in a thread of their own while the user looks: the map is drawn from them, tags are read from them."""

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.failures import describe
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.features import compute
from unskew.parts.opinion import simple_representations
from unskew.parts.tagging import principal
from unskew.stats.sample import stratified
from unskew.stats.softmax import principal_axes
from unskew.training.defaults import weights_at_hand
from unskew.training.simple import slice_features
from unskew.verbs.audit import audited_rows

GRID = 16  # cells along a side that fine detail is measured in
PARTS = 4  # along a side: each part of the picture is read on its own, so that a small mark is not lost among the rest
DEEP = 2000  # rows up to which a pretrained network looks too, if its weights are at hand
UMAP_ROWS = 20_000
BATCH = 256


@dataclass(frozen=True)
class Seen:
    """Features of some rows: blocks as of `parts.tagging.principal`, what each is in words, and places on a map."""

    index: Tensor  # (n,) sample ids, in order
    blocks: dict[str, Tensor]
    phrases: dict[str, str]
    points: Tensor  # (n, 2) in [0, 1]
    how: str  # UMAP or PCA, and of what


@dataclass
class Looks:
    """Starts computing when told to; `seen` is None until there is something to see, and may get better later."""

    data: DataSet
    most: int = 20_000  # rows whose features are computed; 0: all
    seed: int = 0
    seen: Seen | None = None
    version: int = 0
    note: str = ""
    working: bool = False
    _thread: threading.Thread | None = None
    _ready: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, daemon=True, name="features")
        self.working = True
        self._thread.start()

    def wait(self, seconds: float | None = None) -> Seen:
        """What there is to see; raises if there is nothing."""
        self._ready.wait(seconds)
        if self.seen is None:
            raise UserError(self.note or "features are still being computed; try again in a moment")
        return self.seen

    def _work(self) -> None:
        try:
            rows = self.rows()
            for seen in _looks(self.data, rows):
                self.seen, self.version = seen, self.version + 1
                self._ready.set()
            self.note = (
                "" if len(rows) == len(self.data) else f"features of {len(rows):,} of {len(self.data):,} rows (--most 0: all)"
            )
        except Exception as error:  # a thread has nobody to raise to
            self.note = describe(error)[1]
        finally:
            self.working = False
            self._ready.set()

    def rows(self) -> Tensor:
        """All rows, or a sample of them in which every class has its share."""
        n = len(self.data)
        if not self.most or n <= self.most:
            return torch.arange(n)
        if self.data.multi_label:
            return torch.linspace(0, n - 1, self.most, dtype=torch.float64).long()
        return stratified(self.data.y, self.most, seed=self.seed)


def _looks(data: DataSet, rows: Tensor) -> Iterator[Seen]:
    """First what is fast to compute, then, where it is worth it, also what a pretrained network sees."""
    if not data.has_inputs:
        raise UserError("the table has no inputs, so there is no map, and a tag cannot be spread")
    workers = 0 if data.inputs.in_memory or data.reading is None else int(data.reading.workers)
    index, blocks, phrases = _simple(data, rows, workers)
    fast = {name: principal(block) for name, block in blocks.items()}
    shown = [n for n in fast if not n.startswith("part ")]
    yield _drawn(index, fast, phrases, shown, quick=True)
    if len(data.shape) == 3 and len(index) <= DEEP and weights_at_hand() and data.shape[0] in (1, 3):
        there, deep, words = slice_features(data, index, workers)
        kept = torch.isin(index, there)
        more = {name: block[kept] for name, block in fast.items()} | {"network": principal(deep)}
        yield _drawn(there, more, phrases | {"network": f"a pretrained network ({words})"}, ["network"])
    elif umap_can_place(len(index)):
        yield _drawn(index, fast, phrases, shown)


def _simple(data: DataSet, rows: Tensor, workers: int) -> tuple[Tensor, dict[str, Tensor], dict[str, str]]:
    if len(data.shape) == 1:
        x, fine = data.inputs.rows(rows)
        return rows[fine], {"vectors": x[fine].float()}, {"vectors": "the vectors"}
    index, blocks, phrases = _pictures(data, rows, workers)
    audited = audited_rows(data)
    specs = simple_representations(data) if len(data.shape) == 3 else []
    if specs:
        # The audited rows apart from the others: an audit of the same data has them in the cache.
        parts = [part for part in (index[torch.isin(index, audited)], index[~torch.isin(index, audited)]) if len(part)]
        found = [compute(data, specs, part, workers=workers) for part in parts]
        ids = torch.cat([i for i, _ in found])
        order = ids.argsort()
        blocks = {name: block[torch.isin(index, ids)] for name, block in blocks.items()}
        blocks |= {one.name: torch.cat([f[one.name] for _, f in found])[order] for one in specs}
        blocks = {name: block for name, block in blocks.items() if not bool(torch.isnan(block).any())}
        phrases |= {one.name: one.phrase for one in specs}
        index = ids[order]
    return index, blocks, phrases


def _pictures(data: DataSet, rows: Tensor, workers: int) -> tuple[Tensor, dict[str, Tensor], dict[str, str]]:
    """Pixels, shrunk; and of pictures that are large enough, fine detail cell by cell, as a whole and in parts."""
    ids, found = [], dict[str, list[Tensor]]()
    for index, x in rows_in_order(data, rows, BATCH, workers=workers):
        ids.append(index)
        flat = x.flatten(0, 1) if x.ndim == 5 else x
        side = min(16 if x.ndim == 4 else 8, *x.shape[-2:])
        found.setdefault("pixels", []).append(F.adaptive_avg_pool2d(flat, side).reshape(len(index), -1))
        if x.ndim == 4 and min(x.shape[-2:]) >= 2 * GRID:
            cells = fine_detail(x)
            found.setdefault("detail", []).append(cells[:, 0].flatten(1))
            size = GRID // PARTS
            for a in range(PARTS):
                for b in range(PARTS):
                    part = cells[:, :, size * a : size * (a + 1), size * b : size * (b + 1)]
                    found.setdefault(f"part {a} {b}", []).append(part.flatten(1))
    if not ids:
        raise UserError(f"no row of {data.name} can be read")
    words = {"pixels": "pixels, shrunk", "detail": "fine detail"}
    words |= {f"part {a} {b}": f"fine detail {_where(a, b)}" for a in range(PARTS) for b in range(PARTS)}
    return torch.cat(ids), {name: torch.cat(parts) for name, parts in found.items()}, words


def fine_detail(x: Tensor) -> Tensor:
    """(n, 1 + 2 C, GRID, GRID) of pictures (n, C, H, W): how much each cell differs from its surroundings, and its extremes.

    >>> fine_detail(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 7, 16, 16])
    """
    grey = x.mean(1, keepdim=True)
    rough, flecks = (grey - _blurred(grey, 5)).abs(), x - _blurred(x, 9)
    energy = F.adaptive_avg_pool2d(rough, GRID).add(2e-3).log()
    return torch.cat([energy, F.adaptive_max_pool2d(flecks, GRID), -F.adaptive_max_pool2d(-flecks, GRID)], 1)


def _blurred(x: Tensor, width: int) -> Tensor:
    return F.avg_pool2d(F.pad(x, (width // 2,) * 4, mode="replicate"), width, 1)


def _where(a: int, b: int) -> str:
    """A part of the picture in words.

    >>> _where(0, 0), _where(3, 1)
    ('at the top left', 'at the bottom, left of the middle')
    """
    high = ("at the top", "above the middle", "below the middle", "at the bottom")[a]
    wide = (" left", ", left of the middle", ", right of the middle", " right")[b]
    return high + (wide if a in (0, 3) or b in (1, 2) else f" on the{wide}")


def _drawn(index: Tensor, blocks: dict[str, Tensor], phrases: dict[str, str], shown: list[str], quick: bool = False) -> Seen:
    x = torch.cat([blocks[name][:, 1:] / blocks[name].shape[1] ** 0.5 for name in shown], 1)
    points, how = map_of(x, quick)
    low, high = points.min(0).values, points.max(0).values
    points = (points - low) / (high - low).clamp(min=1e-9)
    return Seen(index, blocks, phrases, points, f"{how} of {', '.join(phrases.get(n, n) for n in shown[:3])}")


def umap_can_place(rows: int) -> bool:
    """Whether UMAP is installed, and has neither too few rows nor too many."""
    return 15 < rows <= UMAP_ROWS and importlib.util.find_spec("umap") is not None


def map_of(x: Tensor, quick: bool = False) -> tuple[Tensor, str]:
    """Two coordinates of every row: by UMAP if it is installed and there are not too many rows, else, or in a hurry, by PCA.

    >>> map_of(torch.eye(5))[0].shape
    torch.Size([5, 2])
    """
    if not quick and umap_can_place(len(x)):
        with suppress(ImportError):  # installed, but one of its own parts is not
            from umap import UMAP

            placed = UMAP(n_components=2, random_state=0, n_jobs=1).fit_transform(
                x.numpy()
            )  # a seed allows one job, and UMAP warns of more
            return torch.from_numpy(placed).float(), "UMAP"
    part = x[:: max(1, len(x) // 20_000)]
    _, axes = principal_axes(part - part.mean(0))
    turned = (x - x.mean(0)) @ axes[:, -2:].flip(1)
    return F.pad(turned, (0, 2 - turned.shape[1])), "PCA"
