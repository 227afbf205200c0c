r"""BAdd: what the bias gives away is added to the features in training, so that the network need not learn it; left out afterwards.

.. math::
    L = \frac1B \sum_i \mathrm{CE}\big(W (h_i + m\, v_{b_i}) + c,\ y_i\big), \qquad z(x) = W h(x) + c

=====  ==========  ======================================================================================================
h      -           what the network's last layer W, c reads
v      vectors     one vector for each bias value, of mean 0 over the values; each column of several has its own
m      scale       length of v in units of the square root of its width
=====  ==========  ======================================================================================================

A row without a bias value gets no vector.

Source: Sarridis, Koutlis, Papadopoulos, Diou, "BAdd: bias mitigation through bias addition", 2024, as implemented in the authors'
vb-mitigator.
Differs: the authors add the features of a network that was trained to predict the bias, and is then frozen. Where the bias is a known
label, those are one vector for each value up to noise: here random directions, fixed (`learn=true`: learnt with the rest).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.models._contract import Model
from unskew.records import Batch, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class BAddConfig:
    scale: float = 1.0  # m: length of the added vectors
    learn: bool = False  # learn the vectors instead of fixing them

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise UserError("badd: scale must be above 0")


class BAdd(Method):
    Config = BAddConfig
    sees = frozenset({"bias"})

    def __init__(self, cfg: BAddConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        if not isinstance(self.model, Model) or not isinstance(self.model.output, nn.Linear):
            raise UserError("badd needs a network that ends in a linear layer")
        width = self.model.output.in_features
        self.vectors = nn.ParameterList(nn.Parameter(torch.randn(size, width), cfg.learn) for size in facts.bias_sizes)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        assert isinstance(self.model, Model)
        h = self.model.features(batch.x).flatten(1)
        for vectors, code in zip(self.vectors, batch.need("bias").unbind(1), strict=True):
            h = h + self.cfg.scale * added(vectors, code).to(h)
        return {"ce": batch.mean(task_loss(self.model.output(h), batch.y))}


def added(vectors: Tensor, code: Tensor) -> Tensor:
    """(B, D) the centred vector of each row's value; 0 where the value is missing (-1).

    >>> added(torch.tensor([[2.0], [0.0]]), torch.tensor([0, 1, -1])).flatten().tolist()
    [1.0, -1.0, 0.0]
    """
    centred = vectors - vectors.mean(0)
    return torch.where(code[:, None] >= 0, centred[code.clamp(min=0)], 0.0)
