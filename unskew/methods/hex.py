r"""HEX: project out of the predictions what grey-level co-occurrence (texture) explains.

.. math::
    F_L = F_A - F_G (F_G^\top F_G + r I)^{-1} F_G^\top F_A, \qquad
    F_A = o([h, g]), \quad F_G = o([0, g]), \quad F_P = o([h, 0])

    G_{kl} = \sum_j \mathrm{clip}(d_j - \lambda_k, 0, 1)\, \mathrm{clip}(q_j - \theta_l, 0, 1), \qquad
    g = \max(0, W\, \mathrm{vec}\,G + b), \qquad d_j = q_{j-1} - q_j

=======  ==========  ====================================================================================================
h        --model     last features of the network
q        levels      grey levels of the input, quantised: floor(x (levels - 1) / max x), along the rows of the image
G        nglcm       differentiable grey-level co-occurrence matrix; thresholds lambda, theta learned from U(0, levels)
o        output      one linear layer on both
r        ridge       times the mean of the diagonal, so that the system stays solvable when F_G is nearly singular
=======  ==========  ====================================================================================================

F_L is trained by cross-entropy, F_P predicts. NGLCM sees no colour, so it cannot remove a colour bias: Table 1 of ReBias has 10.8 to
24.7 % on Biased MNIST, below plain training at three of four correlations.

Source: Wang, He, Lipton, Xing, "Learning robust representations by projecting superficial statistics out", ICLR 2019; the
authors' code for sizes and initialisation; as a baseline of Bahng et al., ICML 2020.
Differs: each feature is divided by its root mean square over the batch, in evaluation by a running one (the code divides by the
norm along the batch, so that a prediction depends on the other rows of its batch); a ridge is added; G is divided by the number
of pixels. Colours are averaged to grey; if normalised inputs are negative, their minimum is subtracted first. Inputs that are not
images are treated as one line of pixels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.losses import task_loss
from unskew.methods._contract import Method
from unskew.models._contract import Model
from unskew.parts.second import features_and_logits
from unskew.records import Batch, Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class HEXConfig:
    levels: int = 16  # grey levels (n_g)
    width: int = 32  # units of g
    ridge: float = 1e-3  # r, relative to the mean of the diagonal
    momentum: float = 0.1  # of the running root mean square

    def __post_init__(self) -> None:
        if self.levels < 2 or self.width < 1 or self.ridge <= 0 or not 0 < self.momentum <= 1:
            raise UserError("hex: levels must be at least 2, width at least 1, ridge above 0, momentum in (0, 1]")


def quantise(x: Tensor, levels: int) -> Tensor:
    """(B, P) grey levels 0 to levels - 1, relative to each image's maximum."""
    grey = (x.mean(1) if x.ndim == 4 else x).flatten(1)
    grey = grey - grey.amin(1, keepdim=True).clamp(max=0)  # normalised inputs may be negative
    return (grey / grey.amax(1, keepdim=True).clamp(min=1e-12) * (levels - 1)).floor()


def nglcm(q: Tensor, lower: Tensor, theta: Tensor) -> Tensor:
    """(B, K, L) co-occurrence of neighbour differences and levels. The first pixel has no neighbour and keeps -q."""
    before = torch.cat([torch.zeros_like(q[:, :1]), q[:, :-1]], 1)
    d = (before - q)[:, None] - lower[None, :, None]  # (B, K, P)
    level = q[:, None] - theta[None, :, None]
    return torch.bmm(d.clamp(0, 1), level.clamp(0, 1).transpose(1, 2))


def project_out(a: Tensor, gram: Tensor, cross: Tensor, g: Tensor, ridge: float) -> Tensor:
    """a - g (g'g + r I)^-1 g'a, from the sums g'g and g'a over the whole batch."""
    size = ridge * gram.diagonal().mean().clamp(min=1e-12)
    ridged = gram + size * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    projected: Tensor = g @ torch.linalg.solve(ridged, cross)
    return a - projected


class HEX(Method):
    Config = HEXConfig

    scale: Tensor  # running root mean square of h and g

    @classmethod
    def reads_inputs(cls, cfg: HEXConfig) -> bool:
        return True

    def __init__(self, cfg: HEXConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        if not isinstance(self.model, Model):
            raise UserError("hex needs a network with named layers")
        with torch.no_grad():
            self.h_width = features_and_logits(self.model.eval(), torch.zeros(2, *facts.shape))[0].shape[1]
        self.train()
        self.model.output.requires_grad_(False)  # replaced by `self.output`
        self.lower = nn.Parameter(torch.rand(cfg.levels) * cfg.levels)
        self.theta = nn.Parameter(torch.rand(cfg.levels) * cfg.levels)
        self.to_g = nn.Linear(cfg.levels**2, cfg.width)
        self.output = nn.Linear(self.h_width + cfg.width, facts.num_classes)
        self.register_buffer("scale", torch.ones(self.h_width + cfg.width))

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h, g = self._normal(self._features(batch.x), self._texture(batch.x))
        both = self.output(torch.cat([h, g], 1))
        alone = self.output(torch.cat([torch.zeros_like(h), g], 1))
        gram, cross = engine.global_sum_with_gradient(alone.T @ alone), engine.global_sum_with_gradient(alone.T @ both)
        per_sample = task_loss(project_out(both, gram, cross, alone, self.cfg.ridge), batch.y)
        return {"ce": batch.mean(per_sample)}

    def predict(self, x: Tensor) -> Tensor:
        h = self._features(x) / self.scale[: self.h_width]
        logits: Tensor = self.output(torch.cat([h, h.new_zeros(len(h), self.cfg.width)], 1))
        return logits

    def _features(self, x: Tensor) -> Tensor:
        assert isinstance(self.model, Model)
        return self.model.features(x).flatten(1)

    def _texture(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            q = quantise(x, self.cfg.levels)
        g = nglcm(q, self.lower, self.theta) / q.shape[1]
        return torch.relu(self.to_g(g.flatten(1)))

    def _normal(self, h: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        """Both divided by their root mean square over the whole batch."""
        both = torch.cat([h, g], 1)
        rows = engine.global_sum(both.new_tensor(float(len(both))))
        rms = (engine.global_sum_with_gradient(both.square().sum(0)) / rows).clamp(min=1e-12).sqrt()
        if self.training:
            self.scale.lerp_(rms.detach().to(self.scale), self.cfg.momentum)
        both = both / rms
        return both[:, : self.h_width], both[:, self.h_width :]
