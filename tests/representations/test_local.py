"""A small mark at random places is found, on the half of the rows that the network has not seen; without one, nothing is."""

import torch

from unskew.data.native import picture_of
from unskew.parts.probing import read
from unskew.representations.local import DECAY, SIDE, Config, adam, halves, learn, look, score


def gather(block, y, cfg):
    return score(learn(block, y, cfg), block, torch.arange(len(block)), cfg)


def pictures(marked):
    g = torch.Generator().manual_seed(0)
    x = torch.randint(60, 160, (240, 3, 6, 6), generator=g, dtype=torch.uint8)
    x = torch.nn.functional.interpolate(x.float(), size=(SIDE, SIDE), mode="bilinear").byte()
    y = torch.arange(240) % 2
    for k, (row, column) in enumerate(torch.randint(0, SIDE - 5, (240, 2), generator=g).tolist()):
        if marked and y[k]:
            x[k, 0, row : row + 4, column : column + 4] = 230
            x[k, 1:, row : row + 4, column : column + 4] = 30
    return x, y


def test_a_mark_anywhere_is_found_and_fitted_rows_are_not_judged():
    x, y = pictures(True)
    features = gather(x.flatten(1), y, Config())
    fitted = halves(y)
    assert int(fitted.sum()) == 120
    assert bool(features[fitted].isnan().all())
    assert not bool(features[~fitted].isnan().any())
    found = read(features, y)
    assert found.bias > 0.5
    assert found.n == 120
    assert torch.equal(found.gain == 0, fitted)


def test_nothing_is_found_where_nothing_is():
    x, y = pictures(False)
    assert not read(gather(x.flatten(1), y, Config()), y).above_chance


def test_what_it_sees_is_the_picture_at_its_size():
    x = pictures(True)[0][0]
    assert torch.equal(torch.from_numpy(look(picture_of(x), Config())), x.flatten())


def test_steps_are_those_of_torch():
    g = torch.Generator().manual_seed(0)
    mine, theirs = torch.randn(5, 3, generator=g), torch.nn.Parameter(torch.empty(5, 3))
    theirs.data.copy_(mine)
    reference = torch.optim.AdamW([theirs], lr=0.02, weight_decay=DECAY)
    first, second = [torch.zeros(5, 3)], [torch.zeros(5, 3)]
    for step in range(1, 5):
        slope = torch.randn(5, 3, generator=g)
        theirs.grad = slope.clone()
        reference.step()
        adam([mine], [slope], first, second, step, 0.02)
    torch.testing.assert_close(mine, theirs.data)
