"""Leakage where the best attacker is known; amplification of models that err at random and of models that leak."""

import dataclasses
import math

import pytest
import torch
from sklearn.metrics import f1_score

from unskew.core.errors import UserError
from unskew.measure import Attack, bias_amplification, dataset_leakage, dataset_leakage_at, model_leakage
from unskew.measure.leakage import LeakageCurve, corrupt, corruption_share, dataset_leakage_curve
from unskew.stats.f1 import macro_f1

QUICK = Attack(rounds=3, hidden=32, lr=2e-3, epochs=12, min_steps=0, batch=256, attacker="network")
SHORT = Attack(rounds=2, hidden=16, lr=2e-3, epochs=4, min_steps=0, batch=128, attacker="network")


def labels_with_attribute(n=8000, classes=5, seed=0):
    """Label k occurs with chance p_k(a). With balanced a the best guess is the likelier a for the label seen."""
    g = torch.Generator().manual_seed(seed)
    a = torch.randint(0, 2, (n,), generator=g)
    p = torch.tensor([[0.4, 0.25, 0.2, 0.1, 0.05], [0.05, 0.1, 0.2, 0.25, 0.4]])
    y = torch.multinomial(p[a], 1, generator=g).flatten()
    best = float(torch.maximum(p[0], p[1]).sum()) / 2
    return y, a, best


def test_the_attacker_reaches_the_bayes_optimum():
    y, a, best = labels_with_attribute(20_000)
    found = dataset_leakage(y, a, attack=QUICK)
    assert found.value == pytest.approx(best, abs=0.01)
    assert found.low <= best <= found.high
    assert found.chance == 0.5


def test_nothing_leaks_from_independent_labels_and_everything_from_a_copy():
    g = torch.Generator().manual_seed(0)
    a = torch.randint(0, 2, (6000,), generator=g)
    assert dataset_leakage(torch.randint(0, 4, (6000,), generator=g), a, attack=QUICK).value < 0.53
    assert dataset_leakage(a, a, attack=QUICK).value > 0.99


def test_many_valued_attribute_and_several_labels():
    g = torch.Generator().manual_seed(0)
    a = torch.randint(0, 4, (6000,), generator=g)
    labels = (torch.rand(6000, 4, generator=g) < 0.1 + 0.8 * torch.nn.functional.one_hot(a, 4)).float()
    found = dataset_leakage(labels, a, attack=QUICK)
    assert found.chance == 0.25
    assert 0.7 < found.value < 0.95


def test_imbalance_of_the_attribute_does_not_count():
    g = torch.Generator().manual_seed(0)
    a = (torch.rand(10_000, generator=g) < 0.1).long()
    assert (
        dataset_leakage(torch.randint(0, 3, (10_000,), generator=g), a, attack=QUICK).value < 0.56
    )  # not the 90 % of "always 0"


def test_rounds_together_equal_rounds_one_by_one():
    y, a, _ = labels_with_attribute(2000)
    settings = {"rounds": 3, "hidden": 16, "lr": 1e-3, "epochs": 3, "min_steps": 0, "attacker": "network"}
    one = dataset_leakage(y, a, attack=Attack(together=False, **settings))
    two = dataset_leakage(y, a, attack=Attack(together=True, **settings))
    assert one.rounds == pytest.approx(two.rounds, abs=0.004)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("wanted", [0.9, 0.6, 0.4])
def test_labels_are_corrupted_to_the_wanted_f1(single, wanted):
    g = torch.Generator().manual_seed(0)
    truth = torch.nn.functional.one_hot(torch.randint(0, 10, (4000,), generator=g), 10).float()
    if not single:
        truth = (torch.rand(4000, 10, generator=g) < 0.3).float()
    share = corruption_share(truth, wanted, single, seed=1)
    made = corrupt(truth, share, single, torch.Generator().manual_seed(2))
    assert macro_f1(made, truth) == pytest.approx(wanted, abs=0.02)
    if single:
        assert (made.sum(1) == 1).all()


def test_random_errors_amplify_nothing_and_a_leaking_model_amplifies():
    y, a, _ = labels_with_attribute(12_000)
    g = torch.Generator().manual_seed(1)
    wrong = torch.rand(len(y), generator=g) < 0.3
    said = torch.where(wrong, torch.randint(0, 5, y.shape, generator=g), y)
    noise = 0.3 * torch.randn(len(y), 5, generator=g)
    fair = bias_amplification(4 * torch.nn.functional.one_hot(said, 5) + noise, y, a, attack=QUICK)
    assert fair.low <= 0 <= fair.high
    assert fair.f1 == pytest.approx(float(f1_score(y, said, average="macro")), abs=1e-6)
    leaking = 4 * torch.nn.functional.one_hot(said, 5) + noise
    leaking[:, 0] += a  # the model gives the attribute away in a logit, without changing many predictions
    loud = bias_amplification(leaking, y, a, attack=QUICK)
    assert loud.delta > 0
    assert loud.low > 0


def test_leakage_at_perfect_f1_is_the_plain_leakage():
    y, a, _ = labels_with_attribute(3000)
    assert dataset_leakage_at(y, a, 1.0, attack=QUICK).value == dataset_leakage(y, a, attack=QUICK).value


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (torch.zeros(500), "needs at least two values of the bias column, got 1 in 500 rows"),
        (torch.cat([torch.zeros(495), torch.ones(5)]), "bias value 1 has 5 rows, too few to balance"),
        (torch.zeros(400), "500 rows but 400 bias values"),
    ],
)
def test_bad_attributes(attribute, words):
    with pytest.raises(UserError, match=words):
        dataset_leakage(torch.zeros(500).long(), attribute, attack=QUICK)


def test_missing_attribute_values_are_left_out_and_bad_logits_refused():
    y, a, _ = labels_with_attribute(2000)
    a[:100] = -1
    assert dataset_leakage(y, a, attack=QUICK).n <= 1900
    with pytest.raises(UserError, match="NaN"):
        model_leakage(torch.full((10, 2), math.nan), torch.zeros(10))


def test_labels_cannot_be_made_worse_than_random_and_it_says_so():
    y, a, _ = labels_with_attribute(2000)
    found = dataset_leakage_at(y, a, 0.0, attack=QUICK)
    assert "cannot be corrupted to" in found.note
    assert 0.45 <= found.value <= 0.6


def test_a_curve_of_labels_is_read_on_straight_lines():
    g = torch.Generator().manual_seed(0)
    a = torch.randint(0, 2, (3000,), generator=g)
    y = (torch.rand(3000, 4, generator=g) < 0.2 + 0.5 * a[:, None]).float()
    curve = dataset_leakage_curve(y, a, [0.6, 1.0], attack=SHORT)
    low, high = curve.points
    assert (low.f1, high.f1) == (pytest.approx(0.6, abs=0.01), 1.0)
    assert low.value < high.value
    middle = curve.at((low.f1 + high.f1) / 2)
    assert middle.value == pytest.approx((low.value + high.value) / 2)
    assert curve.at(high.f1).value == pytest.approx(high.value)
    assert "ends at F1" in curve.at(0.2).note
    assert LeakageCurve((low,)).at(0.9).value == low.value
    more = bias_amplification(8 * y - 4, y, a, attack=SHORT, curve=curve)  # a model that is always right
    assert abs(more.delta) < 0.05


def test_a_two_by_two_table_is_a_ratio_of_counts():
    # 300 of 400 and 100 of 400 rows have class 0: the likelier value is right in (0.75 + 0.75) / 2 of the rows, and halves of
    # 200 rows never guess otherwise (the counts would have to differ from their means by nine deviations).
    y = torch.tensor([0] * 300 + [1] * 100 + [0] * 100 + [1] * 300)
    a = torch.tensor([0] * 400 + [1] * 400)
    found = dataset_leakage(y, a)
    assert found.attacker == "table"
    assert found.value == pytest.approx(0.75, abs=1e-9)
    half = 1.96 * math.sqrt(0.75 * 0.25 / 800)
    assert (found.low, found.high) == (pytest.approx(0.75 - half, abs=2e-4), pytest.approx(0.75 + half, abs=2e-4))
    assert dataset_leakage(y, a, seed=7) == found  # nothing is drawn


def test_the_table_agrees_with_networks_and_many_patterns_go_to_networks():
    y, a, _ = labels_with_attribute(8000)
    assert dataset_leakage(y, a).value == pytest.approx(dataset_leakage(y, a, attack=QUICK).value, abs=0.02)
    g = torch.Generator().manual_seed(0)
    bits = (torch.rand(400, 10, generator=g) < 0.5).float()
    short = dataclasses.replace(SHORT, attacker="auto")
    assert dataset_leakage(bits, torch.randint(0, 2, (400,), generator=g), attack=short).attacker == "network"
    assert dataset_leakage(y, a, attack=dataclasses.replace(short, protocol="code")).attacker == "network"


def balanced_classes(rows=1200, classes=40):
    return torch.arange(rows) // 2 % classes, torch.arange(rows) % 2


def test_exactly_balanced_labels_leak_one_half():
    y, a = balanced_classes()
    table = dataset_leakage(y, a)
    assert (table.value, table.by_design) == (0.5, True)
    plain = [dataset_leakage(y, a, attack=SHORT, seed=seed) for seed in range(40)]
    assert all(found.by_design for found in plain)
    # 40 seeds, two rounds of 300 drawn rows: the mean has a deviation of 0.5 / sqrt(24000) = 0.32 points.
    assert sum(found.value for found in plain) / 40 == pytest.approx(0.5, abs=0.011)
    # Binomial of 40 with chance 0.95: 34 or more in 99.4 % of the cases; 32 or more in all but 1 of 20,000.
    assert sum(found.low <= 0.5 <= found.high for found in plain) >= 33
    assert any(found.value < 0.5 for found in plain)


def test_labels_balanced_one_by_one_that_tell_together_are_found():
    # Both labels are fair coins for both values; they agree for one value and differ for the other.
    g = torch.Generator().manual_seed(0)
    first, a = torch.arange(2000) // 2 % 2, torch.arange(2000) % 2
    y = torch.stack([first, (first + a) % 2], 1).float()
    assert dataset_leakage(y, a).value > 0.99
    found = dataset_leakage(y[torch.randperm(2000, generator=g)], a, attack=QUICK)
    assert found.value < 0.6
    assert dataset_leakage(y, a, attack=QUICK).low > 0.9


def test_parts_say_where_attackers_are_fitted_and_judged():
    # In the fitted rows class and value agree, in the judged ones they are opposite: nothing is right.
    y = torch.arange(600) % 2
    parts = torch.arange(600) // 2 % 3
    a = torch.where(parts == 2, 1 - y, y)
    assert dataset_leakage(y, a, parts=parts).value == 0
    assert dataset_leakage(y, a, attack=QUICK, parts=parts).value < 0.01
    # Folded about one half, what is always wrong is always right.
    assert dataset_leakage(y, a, attack=Attack(protocol="code", attacker="table"), parts=parts).value == 1
    assert dataset_leakage(y, a, attack=dataclasses.replace(QUICK, protocol="code"), parts=parts).value > 0.99
    assert dataset_leakage(y, y, parts=parts).value == 1
    logits = 4.0 * torch.nn.functional.one_hot(y, 2)
    found = bias_amplification(logits, y, a, attack=QUICK, parts=parts)
    assert (found.f1, found.delta) == (1.0, pytest.approx(0, abs=0.02))


def test_balanced_labels_and_logits_that_leak():
    y, a = balanced_classes()
    logits = torch.nn.functional.one_hot(y, 40) * 4.0
    logits[:, 0] += a * 2
    found = bias_amplification(logits, y, a, attack=QUICK)
    assert found.model.by_design
    assert found.low > 0.2


def test_many_rows_are_sampled_and_it_says_so(monkeypatch):
    g = torch.Generator().manual_seed(0)
    a = torch.randint(0, 2, (6000,), generator=g)
    y = torch.where(torch.rand(6000, generator=g) < 0.8, a, 1 - a)
    whole = dataset_leakage(y, a)
    monkeypatch.setattr("unskew.measure.leakage.MOST", 3000)
    found = dataset_leakage(y, a)
    assert whole.note == ""
    assert found.note == "measured on 3,000 of 6,000 rows, drawn at random"
    assert found.n <= 3000 < whole.n
    assert found.value == pytest.approx(0.8, abs=0.03)
    assert found.low < whole.value < found.high
