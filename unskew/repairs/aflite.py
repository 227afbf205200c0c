r"""aflite: drop the rows that many linear classifiers get right without having been trained on them.

.. math::
    \mathrm{score}_i = \frac{\#\{\text{rounds' models that predict } y_i \text{ while } i \text{ was held out}\}}
                            {\#\{\text{models that held } i \text{ out}\}}, \qquad
    S \leftarrow S \setminus \text{the at most } k \text{ rows with the highest score} \ge \tau

until a round drops fewer than k rows, or `size` rows are left.

===  ==================  ============================================================================
m    models              classifiers per round, each fitted on its own random part of the remaining rows
t    train               share of these rows that a classifier is fitted on (of 100,000 of them, if there are more)
k    slice               most rows dropped in a round, as a share of all rows
tau  tau                 lowest score of a row that may be dropped
n    size                share of the rows at which the filter stops
===  ==================  ============================================================================

All m classifiers of a round are one batched softmax regression: one pass over the rows serves all of them. Time grows with the
rows, and memory is that of the features and of one number per row.

Source: Le Bras et al., "Adversarial filters of dataset biases", ICML 2020, algorithm 1 (m = 64, tau = 0.75).
Differs: t, k and n are shares, since the published numbers are for sets of a million rows; a row that no model held out has score
0. With more than 100,000 rows left, the classifiers of a round draw their parts from 100,000 of them, chosen anew in each. The
regressions have scikit-learn's default weight decay. Without `phi`, the features are the last layer of a network: that of
`run`, whose own training rows are dropped unfiltered if it was trained on a part of them, as in the paper (the method `aflite`
trains it on a tenth); or of one trained here with `erm` on all rows, which has seen the labels of the rows it describes, and says so.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from unskew.core import checkpoint, progress
from unskew.core.config import whole_names
from unskew.core.errors import UserError
from unskew.core.matrix import Matrix, Rows, only
from unskew.core.rng import stream
from unskew.records import Table
from unskew.repairs._contract import Outcome, Use, Work, one_class_per_row, unit_rows
from unskew.stats.groups import tensor_of
from unskew.stats.independence import calibrate
from unskew.stats.readers import held_out_opinion
from unskew.stats.select import check_kept
from unskew.stats.softmax import fit_softmax
from unskew.stats.streamed import Scaled

SPLITS = ("train",)
METHOD = "erm"
TRAIN = {"train.epochs": 10, "select.every": "10 epochs"}
POOL = 100_000  # rows from which the classifiers of a round draw their own
TRAINED = "trained.parquet"  # in the folder of a run that was trained on a part of the rows
TOLERANCE = 1e-3  # relative gain of a step at which a fit stops


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    phi: tuple[str, ...] = ()  # representations; empty: the last layer of a network
    run: str = ""  # a finished run whose last layer is used; empty: one is trained with erm
    models: int = 64  # classifiers per round
    train: float = 0.5  # share of the remaining rows that a classifier is fitted on
    slice: float = 0.05  # most rows dropped in a round, as a share of all rows
    tau: float = 0.75  # lowest score of a row that may be dropped
    size: float = 0.2  # share of the rows at which the filter stops
    decay: float | None = None  # weight decay of the classifiers; none: one over the rows of a fit
    calibrate: Literal["independence", "none"] = "independence"  # none: rows are dropped for good, as in the paper

    def __post_init__(self) -> None:
        object.__setattr__(self, "phi", whole_names(self.phi))
        if (
            self.models < 1
            or not 0 < self.train < 1
            or not 0 < self.slice <= 1
            or not 0 <= self.tau <= 1
            or not 0 < self.size <= 1
        ):
            raise UserError("aflite: models must be at least 1, train in (0, 1), slice and size in (0, 1], tau in [0, 1]")
        if self.decay is not None and self.decay < 0:
            raise UserError("aflite: decay must not be negative")


def use(cfg: Config) -> Use:
    return "keep" if cfg.calibrate == "none" else "chance"


def apply(work: Work, cfg: Config) -> Outcome:
    data = work.data
    one_class_per_row(data, "aflite")
    index, features = work.features(cfg.phi) if cfg.phi else work.layer(cfg.run, METHOD)
    known = torch.zeros(0, dtype=torch.long) if cfg.phi else _known(cfg.run)
    if not cfg.phi and not len(known):
        progress.say("aflite: the network was trained on the rows that it describes; the method aflite trains it on others")
    fresh = ~torch.isin(index, known)
    if int(fresh.sum()) < len(data.classes):
        raise UserError(f"aflite: the network of {cfg.run} was trained on all rows but {int(fresh.sum())}; train it on fewer")
    every, index, features = index, index[fresh], features if bool(fresh.all()) else only(features, fresh)
    kept, score, rounds = aflite(
        features, data.y[index], models=cfg.models, train=cfg.train, slice=cfg.slice, tau=cfg.tau, size=cfg.size,
        decay=cfg.decay, seed=work.seed, state=work.state,
    )  # fmt: skip
    check_kept(kept, data.y[index], data.classes, f"tau={cfg.tau:g} size={cfg.size:g}")
    weight = torch.zeros(len(index))
    weight[kept] = 1

    def whole(part: Tensor) -> Tensor:
        """The same of all rows, with 0 for those that the network was trained on."""
        return part.new_zeros(len(every)).masked_scatter_(fresh, part)

    if cfg.calibrate == "none":
        return Outcome(every, whole(weight), whole(score), figures={"rounds": rounds}, representations=cfg.phi)
    y = data.y[index]
    opinion = held_out_opinion(features, y, len(data.classes), 1e-2, work.seed)
    tempered = calibrate(weight, y, opinion, len(data.classes))
    progress.say(tempered.words())
    figures = {"rounds": rounds, "power": tempered.power, "effective_rows": tempered.effective, "notes": [tempered.words()]}
    judged = opinion if bool(fresh.all()) else None
    return Outcome(every, whole(tempered.weight), whole(score), figures=figures, representations=cfg.phi, opinion=judged)


def _known(run: str) -> Tensor:
    """The sample ids that a run was trained on, if it was trained on a part of the rows."""
    path = Path(run) / TRAINED
    return Table.read(path).index if run and path.is_file() else torch.zeros(0, dtype=torch.long)


def aflite(
    features: Rows,
    y: Tensor,
    *,
    models: int = 64,
    train: float = 0.5,
    slice: float = 0.05,
    tau: float = 0.75,
    size: float = 0.2,
    decay: float | None = None,
    seed: int = 0,
    state: Path | None = None,
) -> tuple[Tensor, Tensor, int]:
    """(positions of the rows kept, last score of every row, rounds made)."""
    y = tensor_of(y, "labels").long()
    features = features if isinstance(features, Matrix) else torch.as_tensor(features)
    if len(features) != len(y) or not len(y):
        raise UserError(f"{len(features)} rows of features for {len(y)} labels")
    if int(y.min()) < 0:
        raise UserError(f"labels must be class codes from 0 on, but row {int(y.argmin())} has {int(y.min())}")
    if isinstance(features, Tensor) and not bool(torch.isfinite(features).all()):
        raise UserError("features have NaN or infinity")
    x = unit_rows(features.reshape(len(features), -1) if isinstance(features, Tensor) else features)
    kept, score, rounds = torch.arange(len(y)), torch.zeros(len(y), dtype=torch.float64), 0
    if state is not None and state.is_file():
        tensors, facts = checkpoint.read(state)
        kept, score, rounds = tensors.get("kept", kept[:0]), tensors.get("score", score), facts.get("rounds", 0)
        alien = kept.dtype != torch.long or score.shape != y.shape or score.dtype != torch.float64 or type(rounds) is not int
        if alien or not 0 < rounds <= len(y) or not len(kept) or not 0 <= int(kept.min()) <= int(kept.max()) < len(y):
            raise UserError(f"{state} is not the state of this repair (round {rounds}); remove it to start again")
        progress.say(f"resuming at round {rounds}")
    most, least = max(1, round(slice * len(y))), round(size * len(y))
    with progress.bar("aflite rounds", -(-(len(y) - least) // most), rounds) as advance:
        while len(kept) > least and int(y[kept].bincount().count_nonzero()) > 1:
            mine = x[kept] if isinstance(x, Tensor) else x.only(kept)
            score[kept] = predictability(mine, y[kept], models, train, decay, stream(seed, "aflite", rounds))
            order = kept[score[kept].argsort(descending=True, stable=True)]
            gone = order[: min(most, len(kept) - least)]
            gone = gone[score[gone] >= tau]
            kept = kept[~torch.isin(kept, gone)]
            rounds += 1
            advance(1, f"{len(kept)} rows left")
            if len(gone) < most:
                break
            if state is not None:
                checkpoint.save(state, {"kept": kept, "score": score}, {"rounds": rounds})
    return kept, score, rounds


def with_ones(x: Tensor) -> Tensor:
    return torch.cat([torch.ones(len(x), 1), x.float()], 1)


def predictability(
    x: Tensor | Scaled, y: Tensor, models: int, train: float, decay: float | None, generator: torch.Generator
) -> Tensor:
    """The share of `models` that held a row out and get it right; 0 if none held it out."""
    pool = torch.arange(len(y))
    if len(y) > POOL:
        pool = torch.randperm(len(y), generator=generator)[:POOL].sort().values
    size = min(len(pool) - 1, max(2, round(train * len(pool))))
    inside = torch.stack([torch.randperm(len(pool), generator=generator) < size for _ in range(models)], 1)  # (pool, m)
    # The scores need only the predictions, not a fully converged loss.
    w = fit_softmax(
        with_ones(x[pool]),
        y[pool],
        inside,
        (1 / size if decay is None else decay,),
        int(y.max()) + 1,
        tolerance=TOLERANCE,
        iterations=100,
    )[0]  # (m, D, C)
    flat = w.transpose(1, 2).reshape(-1, x.shape[1] + 1)
    score = torch.empty(len(y), dtype=torch.float64)
    held = torch.full((len(y),), models)
    held[pool] -= inside.sum(1)
    place = torch.full((len(y),), -1)
    place[pool] = torch.arange(len(pool))
    for rows in torch.split(torch.arange(len(y)), max(1, 2_000_000 // len(flat))):
        right = (flat @ with_ones(x[rows]).T).view(models, -1, len(rows)).argmax(1) == y[rows]
        drawn = place[rows] >= 0
        right[:, drawn] &= ~inside[place[rows[drawn]]].T
        score[rows] = right.sum(0).double()
    return score / held.clamp(min=1)
