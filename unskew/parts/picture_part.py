"""The part of the picture that explains errors which no other part does: where a shortcut lies that nothing was made to read.

Nine windows, half as wide and high as the picture, overlap by half. Each is read by a linear reader of its cells, and what lies
outside by another. A simple model's errors are of two sorts: hard rows, which every part shows badly, and rows in which one part
contradicts the others. So only rows are asked about whose rest shows their class; a reader of the window explains the errors among them
if it prefers what the model says to the row's own class more often there than in rows that the model gets right (measure
explained_errors). A window stands out if it does so better than every window that shares no cell with it: its interval must lie above
their values.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.measure.explained_errors import explained_errors
from unskew.stats.readers import FOLDS, class_balanced, spread_folds

GRID, STEP = 16, 4  # cells of a side, and between windows of half a side
DECAY = 0.05  # of the readers
LEAST_ERRORS = 50  # fewer, and a window stands out by chance

Box = tuple[float, float, float, float]  # left, top, right, bottom, as shares of the sides


def standing_out(cells: Tensor, y: Tensor, logits: Tensor, *, seed: int = 0) -> Box | None:
    """The window of standardised cells (n, channels, 16, 16) that explains a model's errors as no other part does; None: there is none.

    `logits` (n, C) are the model's, of rows that it was not fitted on, with classes `y`.
    """
    wrong, own = logits.argmax(1) != y, y[:, None]
    rival = logits.scatter(1, own, -torch.inf).argmax(1, keepdim=True)  # what the model says, or would say next
    places = [(top, left) for top in range(0, GRID // 2 + 1, STEP) for left in range(0, GRID // 2 + 1, STEP)]
    fold, asked, found = spread_folds(y, FOLDS, seed), {}, {}
    for top, left in places:
        inside = torch.zeros(GRID, GRID, dtype=torch.bool)
        inside[top : top + GRID // 2, left : left + GRID // 2] = True
        rest = ridge_scores(cells[:, :, ~inside].flatten(1), y, fold, logits.shape[1])
        score = ridge_scores(cells[:, :, inside].flatten(1), y, fold, logits.shape[1])
        shown = rest.argmax(1) == y
        margin = (score.gather(1, own) - score.gather(1, rival)).squeeze(1)
        asked[top, left] = margin[shown], wrong[shown], y[shown]
        found[top, left] = explained_errors(*asked[top, left], bootstrap=2)  # the interval is needed of one alone
    best = max((p for p in places if found[p].wrong >= LEAST_ERRORS), key=lambda p: found[p].value, default=None)
    if best is None:
        return None
    apart = [found[p].value for p in places if max(abs(p[0] - best[0]), abs(p[1] - best[1])) >= GRID // 2]
    low = explained_errors(*asked[best], seed=seed).low
    if not apart or not all(low > value for value in apart):  # nothing lies apart from the centre
        return None
    top, left = best
    return left / GRID, top / GRID, (left + GRID // 2) / GRID, (top + GRID // 2) / GRID


def ridge_scores(x: Tensor, y: Tensor, fold: Tensor, classes: int, decay: float = DECAY) -> Tensor:
    """(n, C) scores of the classes by ridge regression on class codes, each row scored by a reader that was not fitted on it."""
    x = torch.cat([torch.ones(len(x), 1), x], 1).double()
    weight, target = class_balanced(y), F.one_hot(y, classes).double()
    folds = range(int(fold.max()) + 1)
    parts = [(x[fold == k].T * weight[fold == k], fold == k) for k in folds]
    square = torch.stack([part @ x[rows] for part, rows in parts])
    right = torch.stack([part @ target[rows] for part, rows in parts])
    penalty = decay * len(y) * torch.eye(x.shape[1], dtype=x.dtype)
    penalty[0, 0] = 1e-9
    # A reader for each fold left out. By Cholesky: the general solver of some builds fails here with several threads.
    beta = torch.cholesky_solve(right.sum(0) - right, torch.linalg.cholesky(square.sum(0) - square + penalty))
    scores = torch.empty(len(x), classes, dtype=x.dtype)
    for k in folds:
        scores[fold == k] = x[fold == k] @ beta[k]
    return scores
