import torch

from unskew.stats.sample import stratified


def test_classes_keep_their_shares_and_small_ones_their_rows():
    y = torch.tensor([0] * 6000 + [1] * 3000 + [2] * 60 + [3] * 10)
    counts = y[stratified(y, 1000)].bincount().tolist()
    assert counts == [round(1000 * 6000 / 9070), round(1000 * 3000 / 9070), 50, 10]


def test_every_row_of_a_small_set_once():
    assert stratified(torch.zeros(7).long(), 7).tolist() == list(range(7))
    picked = stratified(torch.tensor([0, 1] * 500), 100, least=1)
    assert picked.tolist() == sorted(set(picked.tolist()))
    assert picked.tolist() != stratified(torch.tensor([0, 1] * 500), 100, least=1, seed=1).tolist()
