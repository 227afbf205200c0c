r"""denoise: drop the rows whose loss is too large for the model's uncertainty: their label is probably wrong.

.. math::  \hat L_i = \frac{\mathrm{CE}_i}{H_i}, \qquad \delta = \frac{\sum_i \mathrm{CE}_i}{\sum_i H_i}, \qquad
           \text{clean} = \{ i : \hat L_i < \text{factor} \cdot \delta \}

H is the entropy of the model's prediction. A clean conflicting row also has a large loss, but there the model is unsure; on a
wrong label it is sure of another class. In the plane of H and CE the rule is a line through the origin.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, section 5.
Differs: delta sums the raw cross-entropy (the text's normalised loss would not have the same unit). The paper does not say how
long the model trains: here it trains by cross-entropy with the three augmentations and stops where the loss on the val rows is
lowest (`select.rule=val-loss`), since a model that has memorised its rows cannot recognise wrong labels. Delta is raised by a
quarter (`factor`): on Colored MNIST that keeps a tenth more of the clean conflicting rows, at the price of a few noisy ones
(docs/results/denoise.md).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.matrix import slices
from unskew.repairs._contract import Outcome, Use, Work, one_class_per_row
from unskew.stats.groups import tensor_of
from unskew.stats.select import check_kept

SPLITS = ("train",)
METHOD = "erm"
TRAIN = {
    "optim.name": "sgd", "optim.lr": 0.05, "optim.momentum": 0.9, "optim.weight_decay": 0.001, "optim.schedule": "cosine",
    "data.augment": "pgd", "train.epochs": 20, "train.batch": 256, "select.rule": "val-loss", "select.patience": 5,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    run: str = ""  # a finished run whose model is used; empty: one is trained with erm
    factor: float = 1.25  # factor on delta: above 1 keeps more rows; the paper has 1
    floor: float = 1e-6  # smallest entropy

    def __post_init__(self) -> None:
        if self.factor <= 0 or self.floor <= 0:
            raise UserError("denoise: factor and floor must be above 0")


@dataclass(frozen=True, slots=True)
class Denoised:
    clean: Tensor  # (n,) booleans
    loss: Tensor  # (n,) cross-entropy
    entropy: Tensor  # (n,)
    delta: float


def use(cfg: Config) -> Use:
    return "keep"


def apply(work: Work, cfg: Config) -> Outcome:
    data = work.data
    one_class_per_row(data, "denoise")
    index, logits = work.logits(cfg.run, METHOD)
    result = denoise(logits, data.y[index], factor=cfg.factor, floor=cfg.floor)
    check_kept(result.clean.nonzero().flatten(), data.y[index], data.classes, f"factor={cfg.factor:g}")
    score = result.loss / result.entropy / result.delta
    figures = {"delta": result.delta, "loss": result.loss, "entropy": result.entropy}
    return Outcome(index, result.clean.float(), score, noisy=~result.clean, figures=figures)


def denoise(logits: Tensor, y: Tensor, *, factor: float = 1.0, floor: float = 1e-6) -> Denoised:
    """Which rows have a loss below delta times their entropy.

    >>> sure_and_wrong, sure_and_right, unsure = [9.0, 0.0], [9.0, 0.0], [0.0, 0.0]
    >>> denoise(torch.tensor([sure_and_wrong, sure_and_right, unsure]), torch.tensor([1, 0, 0])).clean.tolist()
    [False, True, True]
    """
    logits, y = torch.as_tensor(logits), tensor_of(y, "labels").long()
    if logits.ndim != 2 or len(logits) != len(y) or not bool(torch.isfinite(logits).all()):
        raise UserError(f"denoise needs finite logits, one row per label; got {tuple(logits.shape)} for {len(y)} labels")
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < logits.shape[1]:
        raise UserError(f"labels must be class codes from 0 to {logits.shape[1] - 1}, got {int(y.min())} to {int(y.max())}")
    loss, entropy = (torch.empty(len(y), dtype=torch.float64) for _ in range(2))
    for part in slices(len(y)):  # double precision takes twice the memory of the logits
        log_p = F.log_softmax(logits[part].double(), 1)
        loss[part] = -log_p.gather(1, y[part, None]).squeeze(1)
        entropy[part] = (-(log_p.exp() * log_p).sum(1)).clamp(min=floor)
    delta = float(loss.sum() / entropy.sum())
    return Denoised(loss / entropy < factor * delta, loss, entropy, delta)
