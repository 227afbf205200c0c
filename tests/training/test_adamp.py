"""AdamP: Adam where a weight's length matters, and Adam without the part along the weight where it does not."""

import torch

from unskew.training.adamp import AdamP


def steps(make, start, gradients):
    w = torch.nn.Parameter(start.clone())
    optimizer = make([w])
    for gradient in gradients:
        w.grad = gradient.clone()
        optimizer.step()
    return w.detach()


def test_a_vector_or_a_gradient_along_the_weight_moves_as_in_adam():
    draws = torch.Generator().manual_seed(0)
    vector = torch.randn(5, generator=draws, dtype=torch.float64)
    gradients = torch.randn(4, 5, generator=draws, dtype=torch.float64)
    adam, adamp = (lambda p, kind=kind: kind(p, lr=0.1) for kind in (torch.optim.Adam, AdamP))
    torch.testing.assert_close(steps(adamp, vector, gradients), steps(adam, vector, gradients))
    matrix = torch.tensor([[3.0, 4.0], [1.0, 2.0]], dtype=torch.float64)
    along = [matrix + 0.1 * k for k in range(4)]
    torch.testing.assert_close(steps(adamp, matrix, along), steps(adam, matrix, along))


def test_a_gradient_across_the_weight_turns_it_and_decays_it_by_a_tenth():
    w, g = torch.tensor([[3.0, 4.0]], dtype=torch.float64), torch.tensor([[-4.0, 3.0]], dtype=torch.float64)
    # The first step of Adam is the sign of the gradient, (-1, 1). Along w, of unit length (0.6, 0.8), it has 0.2; what is left is
    # (-1.12, 0.84).
    moved = steps(lambda p: AdamP(p, lr=0.1), w, [g])
    torch.testing.assert_close(moved, torch.tensor([[3.112, 3.916]], dtype=torch.float64))
    decayed = steps(lambda p: AdamP(p, lr=0.1, weight_decay=0.5), w, [g])
    torch.testing.assert_close(decayed, moved - w * 0.1 * 0.5 * 0.1)
