"""HEX: the projection, the texture by loops, and a whole step by hand."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, features, make, sgd_step, toy
from unskew.methods.hex import nglcm, project_out, quantise


def test_hex_projection_is_orthogonal_to_what_the_texture_says():
    generator = torch.Generator().manual_seed(0)
    a, g = (torch.randn(20, 3, dtype=torch.float64, generator=generator) for _ in range(2))
    left = project_out(a, g.T @ g, g.T @ a, g, 1e-12)
    expected = a - g @ torch.linalg.inv(g.T @ g) @ g.T @ a
    torch.testing.assert_close(left, expected, rtol=0, atol=1e-8)
    assert float((g.T @ left).abs().max()) < 1e-7
    flat = torch.ones(20, 3, dtype=torch.float64)  # singular: the ridge keeps it solvable
    assert torch.isfinite(project_out(a, flat.T @ flat, flat.T @ a, flat, 1e-3)).all()


def test_hex_texture_by_loops():
    x = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(1))
    q = quantise(x, 16)
    assert int(q.max()) == 15
    grey = x.mean(1).flatten(1)
    assert torch.equal(q[0], torch.floor(grey[0] / grey[0].max() * 15))
    assert int(quantise(x - 0.5, 16).min()) == 0  # below 0 the darkest pixel is the floor
    lower, theta = torch.tensor([0.3, -2.0]), torch.tensor([1.5, 4.0, 9.0])
    made = nglcm(q, lower, theta)
    for i in range(2):
        for k in range(2):
            for m in range(3):
                total = 0.0
                for j in range(20):
                    d = (float(q[i, j - 1]) if j else 0.0) - float(q[i, j])
                    total += min(max(d - float(lower[k]), 0), 1) * min(max(float(q[i, j]) - float(theta[m]), 0), 1)
                assert float(made[i, k, m]) == pytest.approx(total, rel=1e-5)


def test_hex_judges_each_row_by_itself():
    data = toy()
    method = make("hex")
    for _ in range(3):
        sgd_step(method, batch_of(method))
    method.eval()
    whole = method.predict(data.inputs.x)
    torch.testing.assert_close(method.predict(data.inputs.x[:3]), whole[:3])


def test_hex_step():
    method = make("hex", {"levels": "4", "width": "3"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    grey = batch.x - batch.x.amin(1, keepdim=True).clamp(max=0)
    q = torch.floor(grey / grey.amax(1, keepdim=True) * 3)
    d = torch.stack([-q[:, 0], q[:, 0] - q[:, 1]], 1)
    pairs = torch.einsum(
        "bkj,blj->bkl",
        (d[:, None] - method.lower[None, :, None]).clamp(0, 1),
        (q[:, None] - method.theta[None, :, None]).clamp(0, 1),
    )
    h, g = features(method.model, batch.x), F.relu(method.to_g(pairs.flatten(1) / 2))
    h, g = (z / z.square().mean(0).clamp(min=1e-12).sqrt() for z in (h, g))
    both = method.output(torch.cat([h, g], 1))
    alone = method.output(torch.cat([torch.zeros_like(h), g], 1))
    gram = alone.T @ alone
    ridged = gram + 1e-3 * torch.trace(gram) / 3 * torch.eye(3)
    left = both - alone @ torch.linalg.inv(ridged) @ alone.T @ both
    descend(F.cross_entropy(left, batch.y), [p for p in method.parameters() if p.requires_grad])
    for (k, a), b in zip(ours.named_parameters(), method.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9, msg=k)
