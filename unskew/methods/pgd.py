r"""Per-sample gradients (PGD): a model biased by its loss reveals rows that lack the shortcut; a second model learns from them.

.. math::
    f_b = \arg\min \sum_i \frac{1 - p_{y_i}^q}{q}, \qquad
    p_i = \frac{\min_j S_j}{S_i}, \qquad
    f_d = \arg\min\ \mathbb{E}_{i \sim p}\ \mathrm{CE}\big(f_d(A(x_i)), y_i\big)

Stages: `gce` into OUT-biased (or the run named by `biased`, so that several methods can share one); the repair `gradients` into
OUT-scores.parquet (its card defines the scores S); `erm` on rows drawn with probability p, augmented by A, into OUT. A is
`data.augment`, or without it the paper's (`pgd`); the biased model always sees plain images. `train.weights=loss` weights rows by
p instead of drawing them, the paper's variant with a dagger. `q=0` trains the biased model with plain cross-entropy.

`epochs` is the length of the biased stage (none: that of the final one). With `patience=2` it ends as soon as the accuracy on the
validation rows, which are as biased as the training rows, has not risen for two epochs: the shortcut is learnt, and further
training would learn the rows that lack it. No bias labels are used; the weights of the best epoch are kept. That is the default
where it loses nothing: with 100 steps an epoch and 1,000 validation rows, below which an accuracy that stands still may mean
nothing (on Colored MNIST conflicting accuracy changes by 0.0, 0.0 and -0.2 points at 99.5, 99 and 95 %, by -0.3 at the paper's
budget). `warm=true` starts the final model from the biased one's weights, as the code of 2023 does.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, section 4, Algorithm
2.
Differs: rows are drawn with replacement in proportion to p instead of by rejection, which gives the same distribution. The paper
leaves open whether f_d starts from f_b (default: from scratch). The biased model trains for ten epochs by default: on Colored
MNIST it is most biased early on. `patience=0` is the paper's biased stage, which the reproduction suites use. The crop of A is warped
together with the rotation, see data/augment.py.
"""

from dataclasses import dataclass
from typing import Literal

from unskew.core.errors import UserError
from unskew.data.augment import preset
from unskew.data.dataset import DataSet
from unskew.methods._contract import Stage
from unskew.records import Run, Table

STEPS, VALIDATION_ROWS = 100, 1000  # of an epoch, and rows, from which on the biased stage ends by patience

WEIGHS_ERRORS = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    biased: str = ""  # a finished run to use instead of the first stage
    epochs: float | None = 10.0  # epochs of the biased model; none: those of the final one
    patience: int | None = (
        None  # epochs without a rise of validation accuracy that end the biased stage; 0: never; none: 2 on large sets
    )
    q: float = 0.7  # exponent of GCE; 0: its limit, the plain cross-entropy
    lambda_: float = 1.0  # weight of the direction score
    k: int = 100  # dominant coordinates
    variant: Literal["scores", "norm", "softmax", "loss", "logit"] = "scores"  # see the repair gradients
    layer: str = ""  # module whose gradients are scored, or all; empty: the last linear layer
    augment: str = "auto"  # augmentation of the final model; auto: data.augment if it is given, else pgd
    calibrate: Literal["independence", "none"] = "independence"  # see the repair gradients; none: the paper's probabilities
    warm: bool = False  # start the final model from the biased one's weights

    def __post_init__(self) -> None:
        if self.epochs is not None and self.epochs <= 0:
            raise UserError("pgd: epochs must be above 0")
        if self.patience is not None and self.patience < 0:
            raise UserError("pgd: patience must not be negative")
        if self.augment != "auto":
            preset(self.augment)  # reject an unknown name before training the biased model


def default_patience(data: DataSet, batch: int) -> int:
    """Two epochs, or none on a set so small that validation accuracy may stand still by chance."""
    if not data.has("val"):
        return 0
    return 2 if len(data.rows("train")) >= STEPS * batch and len(data.rows("val")) >= VALIDATION_ROWS else 0


def train(stage: Stage, cfg: Config) -> Run:
    if stage.data().multi_label:
        raise UserError("pgd needs one class per row, but this task has several labels per row")
    augment, use = _augment(stage, cfg), _use(stage)
    biased = cfg.biased
    if not biased:
        length = {} if cfg.epochs is None else {"train.epochs": cfg.epochs, "train.steps": None}
        patience = default_patience(stage.data(), stage.budget.batch) if cfg.patience is None else cfg.patience
        rule = {"select.rule": "val-accuracy", "select.every": "1 epoch"} if patience else {"select.rule": "last"}
        plain = {} if stage.frozen else {"data.augment": "none"}
        fixed = {**rule, "select.patience": patience, **plain, "train.weights": "auto"}
        loss, own = ("gce", {"q": cfg.q}) if cfg.q else ("erm", {})
        biased = str(stage.run(stage.beside("biased"), loss, {**length, **fixed, **own}).path)
    scores = {
        "run": biased, "lambda_": cfg.lambda_, "k": cfg.k, "variant": cfg.variant, "layer": cfg.layer, "calibrate": cfg.calibrate,
    }  # fmt: skip
    table = stage.repair(stage.beside("scores.parquet"), "gradients", scores)
    start = {"train.start": biased} if cfg.warm else {}
    change = {"data.augment": augment} if augment else {}
    weights = Table(table.frame, {**table.made_by, "use": use})
    return stage.run(stage.out, "erm", {"train.weights": use, **change, **start}, weights=weights)


def _augment(stage: Stage, cfg: Config) -> str:
    """The augmentation of the final model; empty if it learns only the last layer of a network, whose features are computed once."""
    asked = str(stage.given.get("data.augment", ""))
    if stage.frozen:
        if cfg.augment not in ("auto", "none"):
            raise UserError(f"pgd: augment={cfg.augment} needs the pixels at every step, but only the last layer learns here")
        return ""
    if asked and cfg.augment not in ("auto", asked):
        raise UserError(f"pgd: augment={cfg.augment} and data.augment={asked} contradict each other; leave one out")
    return asked or ("pgd" if cfg.augment == "auto" else cfg.augment)


def _use(stage: Stage) -> str:
    """Rows are drawn by their probabilities, or weighted in the loss."""
    asked = str(stage.given.get("train.weights", "auto"))
    if asked not in ("auto", "chance", "sampler", "loss"):
        raise UserError(f"pgd: train.weights={asked}: must be chance (rows are drawn) or loss (rows are weighted)")
    return "loss" if asked == "loss" else "chance"
