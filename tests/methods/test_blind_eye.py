"""BlindEye: a whole step by hand."""

import copy

import torch
import torch.nn.functional as F

from tests.support.methods import batch_of, descend, features, make, same, sgd_step


def test_blind_eye_step():
    method = make("blind_eye", {"alpha": "0.3"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    head = method.h.heads[0]
    descend(F.cross_entropy(head(features(method.model, batch.x).detach()), batch.bias[:, 0]), head.parameters())
    q = torch.softmax(head(features(method.model, batch.x)), 1)
    undecided = -(q.log().sum(1) / q.shape[1]).mean()
    descend(F.cross_entropy(method.model(batch.x), batch.y) + 0.3 * undecided, method.model.parameters())
    same(ours, method)


def test_a_reversed_gradient_beside_the_confusion():
    """BlindEye+GRL: the predictor's step also moves the features, upwards by mu."""
    method = make("blind_eye", {"alpha": "0.3", "mu": "0.5"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    head, body = method.h.heads[0], list(method.model.parameters())
    ce = F.cross_entropy(head(features(method.model, batch.x)), batch.bias[:, 0])
    up = torch.autograd.grad(ce, body, retain_graph=True, allow_unused=True)
    descend(ce, head.parameters())
    with torch.no_grad():
        for parameter, slope in zip(body, up, strict=True):
            if slope is not None:
                parameter += 0.1 * 0.5 * slope
    q = torch.softmax(head(features(method.model, batch.x)), 1)
    undecided = -(q.log().sum(1) / q.shape[1]).mean()
    descend(F.cross_entropy(method.model(batch.x), batch.y) + 0.3 * undecided, body)
    same(ours, method)
