r"""colored-mnist: digits whose colour gives the class away, in the four versions of the papers.

.. math::  x_i = c_i \otimes g_i, \qquad c_i = \mathrm{clamp}(\mu_{b_i} + \sigma \varepsilon_i, 0, 1), \quad
           \varepsilon_i \sim N(0, I_3), \qquad P(b_i = y_i) = \text{ratio}

g is the grey digit, b the colour (the bias column `color`); c is drawn once per image, the background is black.

=========  =====================  ==========================  ==========================================  ========================
protocol   palette                colours of training rows    jitter sigma                                test
=========  =====================  ==========================  ==========================================  ========================
pgd        LNL's ten              Bernoulli(ratio), others    0.01 (variance 1e-4); the 2023 code has     colour independent of
                                  uniform                     `std=1e-4`                                  the class, one set for
                                                                                                          all ratios
repair     U(0,1)^3, by seed      all aligned                 0.1                                         grey; `test_biased` is
                                                                                                          coloured like training
lnl        LNL's ten              all aligned                 sqrt(0.02), as `variance`                   mean colour of a random
                                                                                                          class, same jitter
lff        LfF's ten              exact counts, by row order  0.005 (its severity 4)                      exact counts, ratio 0.1
=========  =====================  ==========================  ==========================================  ========================

`random_test=true` (pgd) adds the split `test_random`: the test digits once more, in colours drawn from U(0, 1)^3, as in its Table 12.
`digits=3,5,8` (pgd) keeps a few classes and as many colours, and shows every test digit in each colour. pgd holds out the last
tenth of its training images, equally biased, for validation; of the other three, lff can hold out rows drawn at random (`val`). lnl
normalises with CIFAR's mean and standard deviation.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, and the code of its
2023 successor; Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.1; Kim et al., "Learning not to learn", CVPR 2019, section 4.1;
Nam et al., "Learning from failure", NeurIPS 2020, section 4.
Differs: pixels are stored as bytes, so a jitter below 0.002 is lost. pgd follows the text (variance 1e-4) where the 2023 code
differs (standard deviation 1e-4), but uses the code's palette, since the text draws colours at random. lnl: how out-of-range
colours are clipped is not published; clamped here. With base=digits the splits have that set's sizes.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.bases import base
from unskew.data.colour import LFF, LFF_NAMES, LNL, LNL_NAMES, bernoulli_colours, colour_digits, milestone_colours
from unskew.data.dataset import DataSet, Memory

CIFAR_MEAN, CIFAR_STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
_JITTER = {"pgd": 0.01, "repair": 0.1, "lnl": math.sqrt(0.02), "lff": 0.005}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    base: Literal["mnist", "digits"] = "mnist"  # images to colour; digits needs no download
    protocol: Literal["pgd", "repair", "lnl", "lff"] = "pgd"  # paper to follow
    ratio: float = 0.99  # share of aligned training rows (pgd, lff)
    std: float | None = None  # standard deviation of the colour, in [0, 1] RGB; None: the protocol's
    variance: float | None = None  # the same as a variance
    random_test: bool = False  # add the split test_random: test digits in colours drawn from the whole cube (pgd)
    digits: tuple[int, ...] = ()  # only these classes (pgd), with as many colours; test rows then appear in every colour
    val: float = 0.0  # share of the training rows held out for validation, drawn at random (lff)
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if not 0 <= self.val < 1 or (self.val and self.protocol != "lff"):
            raise UserError(f"val={self.val}: must lie in [0, 1), with protocol=lff; pgd always holds out a tenth")
        if self.digits and (self.protocol != "pgd" or len(set(self.digits)) < 2 or not set(self.digits) <= set(range(10))):
            raise UserError(f"digits={self.digits}: must be at least two different digits from 0 to 9, with protocol=pgd")
        if self.random_test and (self.protocol != "pgd" or self.digits):
            raise UserError("random_test=true needs protocol=pgd, with all digits")
        if not 0 <= self.ratio <= 1:
            raise UserError(f"ratio={self.ratio}: the share of aligned rows must lie in [0, 1]")
        if self.std is not None and self.variance is not None:
            raise UserError("set std or variance, not both")
        if min(self.std or 0, self.variance or 0) < 0:
            raise UserError("std and variance must not be negative")

    @property
    def sigma(self) -> float:
        if self.variance is not None:
            return math.sqrt(self.variance)
        return _JITTER[self.protocol] if self.std is None else self.std


def make(cfg: Config) -> DataSet:
    if cfg.digits:
        return _few(cfg)
    grey = base(cfg.base)
    n, num_train = len(grey.y), grey.num_train
    split = torch.full((n,), 2)
    split[:num_train] = 0
    if cfg.protocol == "pgd":
        split[num_train * 9 // 10 : num_train] = 1
    if cfg.val:
        held = torch.randperm(num_train, generator=stream(cfg.seed, "colored-mnist", "val"))
        split[held[: round(cfg.val * num_train)]] = 1
    bias = _colours(cfg, grey.y, num_train)
    palette, names = _palette(cfg)
    noise = torch.randn(n, 3, generator=stream(cfg.seed, "colored-mnist", cfg.protocol, "jitter"))
    colour = (palette[bias] + cfg.sigma * noise).clamp(0, 1)
    x, y = colour_digits(grey.x, colour), grey.y
    splits: tuple[str, ...] = ("train", "val", "test")
    if cfg.protocol == "repair":
        # Coloured test images measure bias, grey ones generalisation.
        splits = ("train", "val", "test", "test_biased")
        split[num_train:] = 3
        test = grey.x[num_train:][:, None].expand(-1, 3, -1, -1)
        x, y = torch.cat([x, test]), torch.cat([y, y[num_train:]])
        split = torch.cat([split, torch.full((n - num_train,), 2)])
        bias = torch.cat([bias, torch.full((n - num_train,), -1)])
    if cfg.random_test:
        splits = ("train", "val", "test", "test_random")
        drawn = torch.rand(n - num_train, 3, generator=stream(cfg.seed, "colored-mnist", "random colours"))
        x, y = torch.cat([x, colour_digits(grey.x[num_train:], drawn)]), torch.cat([y, y[num_train:]])
        split = torch.cat([split, torch.full((n - num_train,), 3)])
        bias = torch.cat([bias, torch.full((n - num_train,), -1)])
    return DataSet(
        name=f"colored-{cfg.base}",
        inputs=Memory(x),
        y=y,
        classes=tuple(map(str, range(10))),
        split=split,
        splits=splits,
        bias=bias[:, None],
        bias_names=("color",),
        bias_values=(names,),
        aligned_by_design=(torch.eye(10, dtype=torch.bool),),
        mean=CIFAR_MEAN if cfg.protocol == "lnl" else (),
        std=CIFAR_STD if cfg.protocol == "lnl" else (),
    )


def _few(cfg: Config) -> DataSet:
    """A few classes in as many colours; every test digit in each colour, so that all groups of the test are equally large."""
    grey, kinds = base(cfg.base), len(cfg.digits)
    code = torch.full((10,), -1)
    code[list(cfg.digits)] = torch.arange(kinds)
    chosen = (code[grey.y] >= 0).nonzero().flatten()
    train, test = chosen[chosen < grey.num_train], chosen[chosen >= grey.num_train].repeat_interleave(kinds)
    rows, y = torch.cat([train, test]), code[grey.y[torch.cat([train, test])]]
    for_train = stream(cfg.seed, "colored-mnist", "few", "train", cfg.ratio)
    bias = torch.cat([biased_codes(y[: len(train)], cfg.ratio, kinds, for_train), torch.arange(len(test)) % kinds])
    split = torch.zeros(len(rows), dtype=torch.long)
    split[len(train) * 9 // 10 : len(train)], split[len(train) :] = 1, 2
    noise = torch.randn(len(rows), 3, generator=stream(cfg.seed, "colored-mnist", "few", "jitter"))
    colour = (torch.tensor(LNL)[bias] / 255 + cfg.sigma * noise).clamp(0, 1)
    return DataSet(
        name=f"colored-{cfg.base}",
        inputs=Memory(colour_digits(grey.x[rows], colour)),
        y=y,
        classes=tuple(map(str, cfg.digits)),
        split=split,
        bias=bias[:, None],
        bias_names=("color",),
        bias_values=(LNL_NAMES[:kinds],),
        aligned_by_design=(torch.eye(kinds, dtype=torch.bool),),
    )


def biased_codes(y: Tensor, ratio: float, kinds: int, generator: torch.Generator) -> Tensor:
    """A colour per row: the class's own with probability `ratio`, else one of the others, uniformly."""
    own = torch.rand(len(y), generator=generator) < ratio
    other = (y + torch.randint(1, kinds, (len(y),), generator=generator)) % kinds
    return torch.where(own, y, other)


def _palette(cfg: Config) -> tuple[Tensor, tuple[str, ...]]:
    if cfg.protocol == "repair":
        drawn = torch.rand(10, 3, generator=stream(cfg.seed, "colored-mnist", "repair", "palette"))
        return drawn, tuple("#" + "".join(f"{round(255 * v):02x}" for v in row) for row in drawn.tolist())
    if cfg.protocol == "lff":
        return torch.tensor(LFF), LFF_NAMES
    return torch.tensor(LNL) / 255, LNL_NAMES


def _colours(cfg: Config, y: Tensor, num_train: int) -> Tensor:
    """Colour code of every row: the training part by the protocol, the test part independent of the class."""
    train, test = y[:num_train], y[num_train:]
    # The test stream does not depend on the ratio: all ratios share one test set.
    for_train = stream(cfg.seed, "colored-mnist", cfg.protocol, "train", cfg.ratio)
    for_test = stream(cfg.seed, "colored-mnist", cfg.protocol, "test")
    if cfg.protocol == "pgd":
        return torch.cat([bernoulli_colours(train, cfg.ratio, for_train), bernoulli_colours(test, 0.1, for_test)])
    if cfg.protocol == "lff":
        return torch.cat([milestone_colours(train, cfg.ratio), milestone_colours(test, 0.1)])
    if cfg.protocol == "lnl":
        return torch.cat([train, torch.randint(0, 10, test.shape, generator=for_test)])
    return y.clone()
