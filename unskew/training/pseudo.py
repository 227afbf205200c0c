"""Groups of validation rows without bias labels: class by a biased model's opinion, and slices that look alike."""

from collections.abc import Sequence

import torch
from torch import Tensor

from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.features import compute, spec
from unskew.parts.opinion import biased_reader, opinion_of, reference_logits, simple_representations
from unskew.stats.readers import with_constant
from unskew.training.simple import trial_features

LEAST = 10  # rows of a group; smaller ones are pooled
MOST = 4000  # training rows that help to fit the biased model
SLICES = 6  # per class, at most
ROWS_PER_SLICE = 25
ROUNDS = 25  # of k-means


def groups_for(rule: str, data: DataSet, seed: int, workers: int) -> Tensor:
    """(N,) group of every validation row, -1 for other rows, for a rule that finds its groups without bias labels."""
    return pseudo_groups(data, seed, workers) if rule == "val-pseudo-groups" else look_alikes(data, seed, workers)


def pseudo_groups(data: DataSet, seed: int, workers: int) -> Tensor:
    """Class by opinion: that of a biased model which was not fitted on the row (see the repair `independence`)."""
    index, opinion = opinions(data, seed, workers)
    return groups_of(data, index, opinion)


def groups_of(data: DataSet, index: Tensor, opinion: Tensor) -> Tensor:
    """(N,) class by opinion of these rows, -1 for other rows."""
    codes = torch.full((len(data),), -1)
    codes[index] = pooled(data.y[index], opinion, len(data.classes))
    return codes


def opinions(data: DataSet, seed: int, workers: int, named: Sequence[str] = ()) -> tuple[Tensor, Tensor]:
    """(ids, opinion) of the validation rows: the class that a biased model says which was not fitted on the row.

    If no simple representation explains the errors of a simple model, representations that were `named` are read instead, and
    without any the simple model's own opinion has to do.
    """
    train, val = data.rows("train"), data.rows("val")
    some = train[torch.randperm(len(train), generator=stream(seed, "pseudo"))[:MOST]]
    index, features = trial_features(data, torch.cat([some, val]).sort().values, workers)
    y, classes = data.y[index], len(data.classes)
    reference = reference_logits(features, y, classes, seed=seed)
    found = opinion_of(data, index, y, classes, reference, seed=seed, workers=workers)
    code = found.code
    if named and not found.source:
        specs = [spec(name) for name in named]
        there, blocks = compute(data, specs, index, workers=workers)
        assert torch.equal(there, index)  # the same rows could be read a moment ago
        code = biased_reader(with_constant(torch.cat([blocks[one.name] for one in specs], 1)), y, classes, seed=seed).argmax(1)
    mine = torch.isin(index, val)
    return index[mine], code[mine]


def pooled(y: Tensor, opinion: Tensor, classes: int, least: int = LEAST) -> Tensor:
    """A group for every row: its (class, opinion) cell; small cells of a class are one group, and small ones of those another.

    >>> y, o = torch.tensor([0, 0, 0, 0, 1, 1]), torch.tensor([0, 0, 1, 2, 1, 0])
    >>> pooled(y, o, 3, least=2).tolist()
    [0, 0, 9, 9, 10, 10]
    """
    cell = classes * y + opinion
    cell = torch.where(cell.bincount(minlength=classes**2)[cell] < least, classes**2 + y, cell)
    return torch.where(cell.bincount(minlength=classes**2 + classes)[cell] < least, classes**2 + classes, cell)


def look_alikes(data: DataSet, seed: int, workers: int) -> Tensor:
    """Up to six slices of every class that look alike, by k-means on simple representations, or on the numbers of a vector."""
    val, specs = data.rows("val"), simple_representations(data)
    if specs:
        index, blocks = compute(data, specs, val, workers=workers)
        x = torch.cat([_unit(blocks[one.name]) for one in specs], 1)
    else:
        x, fine = data.inputs.rows(val)
        index, x = val[fine], _unit(x[fine].flatten(1))
    codes, number = torch.full((len(data),), -1), 0
    for c in range(len(data.classes)):
        rows = (data.y[index] == c).nonzero().flatten()
        slices = max(1, min(SLICES, len(rows) // ROWS_PER_SLICE))
        if len(rows):
            codes[index[rows]] = number + k_means(x[rows], slices, seed)
        number += SLICES
    return codes


def _unit(block: Tensor) -> Tensor:
    """Standardised columns of total variance one, so that a wide representation does not outweigh a narrow one."""
    centred = block.float() - block.float().mean(0)
    unit: Tensor = centred / centred.std(0).clamp(min=1e-6) / block.shape[1] ** 0.5
    return unit


def k_means(x: Tensor, clusters: int, seed: int) -> Tensor:
    """(n,) cluster of every row: Lloyd's iterations from rows drawn far from one another (k-means++)."""
    g = stream(seed, "k-means")
    centres = x[torch.randint(len(x), (1,), generator=g)]
    for _ in range(clusters - 1):
        far = torch.cdist(x, centres).amin(1).square()
        if float(far.sum()) <= 0:
            break
        centres = torch.cat([centres, x[torch.multinomial(far, 1, generator=g)]])
    code = torch.cdist(x, centres).argmin(1)
    for _ in range(ROUNDS):
        counts = code.bincount(minlength=len(centres))
        sums = torch.zeros_like(centres).index_add_(0, code, x)
        centres = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], centres)
        new = torch.cdist(x, centres).argmin(1)
        if torch.equal(new, code):
            break
        code = new
    return code
