r"""neutralise: rows are shown with a named nuisance randomised, so that it cannot be used. What an audit finds, turned into training.

.. math::  L(\theta) = \frac1B \sum_i \ell\big(f_\theta(N_\xi(x_i)), y_i\big), \qquad z(x) = f_\theta(N_0(x))

==========  ==========================================================  =======================================================
what        in training, N with random draws                            in evaluation, N_0
==========  ==========================================================  =======================================================
color       one grey picture a . x with a ~ Dirichlet(1, ..., 1), then  the same with equal a
            stretched to [0, 1]; the same a in all frames of a clip
border      the outer `share` of each side filled with one random       filled with 0.5
            colour per row
center      the inner half filled with one random colour per row        filled with 0.5
low_pass    averaged over squares of 2, 3 or 4 pixels, and enlarged     squares of 3 pixels
patches     cut into `grid` x `grid` patches, shuffled for each row     as it is
frames      frames of a clip shuffled for each row                      as it is
still       a clip without its mean over time                           the same
columns     the numbers `columns` of a vector, shuffled over the batch  their mean over training
==========  ==========================================================  =======================================================

`what=auto` measures which simple representation reads most of the class, as an audit does (the simplest of those that read nearly
as much), and takes what removes it: color for colours, border for the border, low_pass for texture and spectrum, still for single
frames. No bias labels are used, but you say what to ignore: if the nuisance is part of what defines the class, it hurts.

Source: ours; domain randomisation (Tobin et al., IROS 2017) and grey images (Kim et al., CVPR 2019) are its relatives.
Differs: nothing to differ from.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.parts.nuisance import leading_nuisance
from unskew.records import Batch, Facts
from unskew.stats.removal import REMOVES, SQUARES, low_pass, masked, remixed, without

NEEDS = {  # what: (least and most dimensions of a row, in words)
    "color": (3, 4, "images or clips"), "border": (3, 4, "images or clips"), "center": (3, 4, "images or clips"),
    "low_pass": (3, 4, "images or clips"), "patches": (3, 3, "images"), "frames": (4, 4, "clips"), "still": (4, 4, "clips"),
    "columns": (1, 1, "vectors"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NeutraliseConfig:
    what: Literal["auto", "color", "border", "center", "low_pass", "patches", "frames", "still", "columns"] = (
        "auto"  # the nuisance to randomise; auto: what an audit names first
    )
    share: float = 0.125  # of each side, for border
    grid: int = 4  # patches per side, for patches
    columns: tuple[int, ...] = ()  # positions of the numbers, for columns

    def __post_init__(self) -> None:
        if not 0 < self.share < 0.5 or self.grid < 2:
            raise UserError("neutralise: share must lie in (0, 0.5) and grid be at least 2")
        if self.columns and self.what == "auto":
            object.__setattr__(self, "what", "columns")


class Neutralise(Method):
    Config = NeutraliseConfig
    multi_label = True

    seen: Tensor  # (D,) sum of the shuffled columns, for their mean
    count: Tensor  # () rows in that sum

    def __init__(self, cfg: NeutraliseConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        self.register_buffer("seen", torch.zeros(len(cfg.columns), dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    @classmethod
    def reads_inputs(cls, cfg: NeutraliseConfig) -> bool:
        return True

    @classmethod
    def settled(cls, cfg: NeutraliseConfig, data: DataSet) -> NeutraliseConfig:
        if cfg.what != "auto":
            return cfg
        if len(data.shape) == 1:
            raise UserError("neutralise: vectors have no nuisance to look for; name the columns to shuffle, such as columns=0,3")
        workers = 0 if data.reading is None else int(data.reading.workers)
        name = leading_nuisance(data, data.rows("train"), 0, workers)
        kind = name.partition(":")[0]
        if kind not in REMOVES:
            found = (
                f"{name} tells the class, which no change of the inputs removes"
                if name
                else "no simple representation tells the class"
            )
            raise UserError(f"neutralise: {found}; name what to randomise, such as what=color")
        return dataclasses.replace(cfg, what=REMOVES[kind])

    @classmethod
    def check(cls, cfg: NeutraliseConfig, data: DataSet) -> tuple[str, ...]:
        if cfg.what == "auto":
            return ()
        least, most, words = NEEDS[cfg.what]
        if not least <= len(data.shape) <= most:
            raise UserError(f"neutralise: what={cfg.what} needs {words}; {data.name} has inputs of shape {data.shape}")
        if cfg.what == "patches" and min(data.shape[1:]) < cfg.grid:
            raise UserError(f"neutralise: grid={cfg.grid} patches do not fit images of shape {data.shape}")
        if cfg.what == "columns" and not (cfg.columns and 0 <= min(cfg.columns) <= max(cfg.columns) < data.shape[0]):
            raise UserError(f"neutralise: columns={cfg.columns} must name some of the numbers 0 to {data.shape[0] - 1}")
        return (f"neutralise: {cfg.what} is randomised",)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        x = self._shown(batch.x, self.training)
        return {"ce": batch.mean(task_loss(self.model(x), batch.y))}

    def predict(self, x: Tensor) -> Tensor:
        return super().predict(self._shown(x, False))

    def _shown(self, x: Tensor, training: bool) -> Tensor:
        """The inputs as the network sees them. Draws are those of the whole batch, so that several processes agree."""
        what = self.cfg.what
        if what == "auto" or (what in ("patches", "frames") and not training):
            return x
        if what == "still":
            return without(x, what)
        if not training and what != "columns":
            return self._denormalised(without(self._denormalised(x, 1), what, self.cfg.share), -1)
        rows, mine = engine.shard_of_batch(len(x)) if training else (len(x), slice(None))
        if what == "columns":
            return self._shuffled(x, training, rows, mine)
        if what == "frames":
            return taken(x, torch.rand(rows, x.shape[1], device=x.device)[mine].argsort(1))
        if what == "patches":
            return patches(x, torch.rand(rows, self.cfg.grid**2, device=x.device)[mine].argsort(1), self.cfg.grid)
        if what == "low_pass":
            return low_pass(x, SQUARES[int(torch.randint(len(SQUARES), ()))])
        x = self._denormalised(x, 1)
        draws = torch.rand(rows, x.shape[-3], device=x.device)[mine].to(x)
        return self._denormalised(remixed(x, draws) if what == "color" else masked(x, draws, what, self.cfg.share), -1)

    def _denormalised(self, x: Tensor, way: int) -> Tensor:
        """Inputs in [0, 1] (way 1), or normalised again (way -1)."""
        if not self.facts.mean:
            return x
        mean, std = (x.new_tensor(v).view(-1, 1, 1) for v in (self.facts.mean, self.facts.std))
        return x * std + mean if way == 1 else (x - mean) / std

    def _shuffled(self, x: Tensor, training: bool, rows: int, mine: slice) -> Tensor:
        places = list(self.cfg.columns)
        x = x.clone()
        if training:
            whole = engine.whole_batch(x.detach())[:, places]
            self.seen += whole.double().sum(0)
            self.count += len(whole)
            x[:, places] = whole[torch.randperm(rows, device=x.device)[mine]]
        elif int(self.count):
            x[:, places] = (self.seen / self.count).to(x)
        return x


def taken(x: Tensor, order: Tensor) -> Tensor:
    """(B, T, ...) with the entries of each row in its own order (B, T)."""
    return x[torch.arange(len(x), device=x.device)[:, None], order]


def patches(x: Tensor, order: Tensor, grid: int) -> Tensor:
    """Images (B, C, H, W) whose grid x grid patches are in each row's own order; pixels beyond the last whole patch stay.

    >>> x = torch.arange(4.0).view(1, 1, 2, 2)
    >>> patches(x, torch.tensor([[3, 2, 1, 0]]), 2).flatten().tolist()
    [3.0, 2.0, 1.0, 0.0]
    """
    count, channels, height, width = x.shape
    down, across = height // grid, width // grid
    whole = x[..., : down * grid, : across * grid]
    cut = whole.reshape(count, channels, grid, down, grid, across).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    mixed = taken(cut, order).view(count, grid, grid, channels, down, across).permute(0, 3, 1, 4, 2, 5)
    out = x.clone()
    out[..., : down * grid, : across * grid] = mixed.reshape(count, channels, down * grid, across * grid)
    return out
