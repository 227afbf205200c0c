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
