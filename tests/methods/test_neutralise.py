"""neutralise: what each change removes and leaves, by identities; what auto finds; one step by hand; refusals."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import unskew as package
from tests.support.methods import batch_of, descend, images, make, sgd_step
from unskew.core.errors import UserError
from unskew.data import load
from unskew.methods._contract import method_class
from unskew.methods.neutralise import NeutraliseConfig, patches, taken
from unskew.stats.removal import low_pass, masked, remixed
from unskew.training.make import check_data, make_method


def test_color_leaves_nothing_of_the_colour():
    # A coloured digit is colour times shape: every mixture, stretched, is the shape.
    g = torch.Generator().manual_seed(0)
    shape = torch.rand(5, 1, 6, 6, generator=g)
    shape = (shape - shape.amin((2, 3), keepdim=True)) / (shape.amax((2, 3), keepdim=True) - shape.amin((2, 3), keepdim=True))
    colour = torch.rand(5, 3, 1, 1, generator=g) + 0.1
    for draws in (None, torch.rand(5, 3, generator=g)):
        torch.testing.assert_close(remixed(shape * colour, draws), shape.expand(-1, 3, -1, -1))
    assert remixed(torch.full((1, 3, 2, 2), 0.3), None).abs().max() == 0  # one colour: nothing left
    clip = (shape * colour).unsqueeze(1) * torch.tensor([1.0, 0.5]).view(1, 2, 1, 1, 1)
    frames = remixed(clip, torch.rand(5, 3, generator=g))
    torch.testing.assert_close(frames[:, 1], 0.5 * frames[:, 0])  # one mixture and one stretch for all frames


def test_mixtures_are_uniform_over_the_simplex():
    # The mean of a uniform point of the simplex is 1/3; its variance (1/3)(2/3)/4.
    x = torch.eye(3)[None, :, :, None].expand(20000, -1, -1, -1)  # pixel k shows channel k alone
    draws = torch.rand(20000, 3, generator=torch.Generator().manual_seed(1))
    logs = -draws.log()
    share = logs / logs.sum(1, keepdim=True)
    span = share.amax(1, keepdim=True) - share.amin(1, keepdim=True)
    expected = (share - share.amin(1, keepdim=True)) / span
    torch.testing.assert_close(remixed(x, draws)[:, 0, :, 0], expected, rtol=1e-3, atol=1e-3)
    assert share.mean(0).numpy() == pytest.approx([1 / 3] * 3, abs=0.01)
    assert share.var(0).numpy() == pytest.approx([1 / 18] * 3, abs=0.003)


def test_masks_patches_frames_and_squares():
    x = torch.rand(2, 3, 16, 16)
    fill = torch.rand(2, 3)
    border, centre = masked(x, fill, "border"), masked(x, fill, "center")
    torch.testing.assert_close(border[:, :, 2:14, 2:14], x[:, :, 2:14, 2:14], rtol=0, atol=0)
    torch.testing.assert_close(border[:, :, 0], fill[:, :, None].expand(-1, -1, 16), rtol=0, atol=0)
    torch.testing.assert_close(centre[:, :, 5, 5], fill, rtol=0, atol=0)
    torch.testing.assert_close(centre[:, :, :4], x[:, :, :4], rtol=0, atol=0)
    order = torch.stack([torch.randperm(16), torch.arange(16)])
    mixed = patches(x, order, 4)
    torch.testing.assert_close(mixed[1], x[1], rtol=0, atol=0)
    where = divmod(int(order[0, 6]), 4)  # patch 6 lies in row 1, column 2
    expected = x[0, :, 4 * where[0] : 4 * where[0] + 4, 4 * where[1] : 4 * where[1] + 4]
    torch.testing.assert_close(mixed[0, :, 4:8, 8:12], expected, rtol=0, atol=0)
    clip = torch.rand(2, 3, 3, 4, 4)
    torch.testing.assert_close(taken(clip, torch.tensor([[2, 0, 1], [0, 1, 2]]))[0, 0], clip[0, 2], rtol=0, atol=0)
    checks = ((torch.arange(12)[:, None] + torch.arange(12)) % 2).float().expand(1, 1, 12, 12)
    torch.testing.assert_close(low_pass(checks, 2), torch.full_like(checks, 0.5))  # the finest texture is gone


def test_auto_finds_the_colour_of_coloured_digits():
    cfg = method_class("neutralise").settled(NeutraliseConfig(), load("colored-mnist:base=digits,ratio=0.95"))
    assert cfg.what == "color"


def test_predictions_do_not_depend_on_the_colour():
    data, rows = images()
    method = make_method("neutralise", {"what": "color"}, "mlp", {}, data, 0).eval()
    x = data.inputs.x[rows].float() / 255
    shape = x.amax(1, keepdim=True)
    recoloured = shape * torch.rand(len(x), 3, 1, 1).clamp(min=0.2)
    torch.testing.assert_close(method.predict(shape * torch.ones(1, 3, 1, 1)), method.predict(recoloured), rtol=1e-4, atol=1e-4)


def test_shuffled_columns_and_their_mean_by_hand():
    method = make("neutralise", {"columns": "1"})
    ours, batch = copy.deepcopy(method), batch_of(method)
    torch.manual_seed(5)
    sgd_step(ours, batch)
    torch.manual_seed(5)
    x = batch.x.clone()
    x[:, 1] = x[torch.randperm(12), 1]
    descend(F.cross_entropy(method.model(x), batch.y), method.model.parameters())
    for a, b in zip(ours.model.parameters(), method.model.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    still = batch.x.clone()
    still[:, 1] = float(np.mean(batch.x[:, 1].numpy()))
    torch.testing.assert_close(ours.eval().predict(batch.x), ours.model(still))


def test_it_lifts_the_conflicting_rows(tmp_path, own_cache):
    source, short = "colored-mnist:base=digits,digits=3,5,8,ratio=0.96", {"train.steps": 100}
    found = package.evaluate(package.train(source, "neutralise", model="mlp", out=tmp_path / "run", settings=short))
    assert found.groups.conflicting.value > 0.8  # plain training has less than a third


def test_refusals():
    digits = load("colored-mnist:base=digits")
    for settings, match in (
        ({"what": "frames"}, "what=frames needs clips; colored-digits has inputs of shape"),
        ({"columns": "0"}, "what=columns needs vectors"),
    ):
        with pytest.raises(UserError, match=match):
            check_data("neutralise", settings, digits)
    with pytest.raises(UserError, match="name the columns to shuffle"):
        method_class("neutralise").settled(NeutraliseConfig(), load("toy"))
    with pytest.raises(UserError, match="share must lie in"):
        NeutraliseConfig(share=0.6)
