"""Adversarial removal: a whole step by hand, its warm-up, its mask, and weights of several labels."""

import copy
import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import unskew as package
from tests.support.methods import batch_of, descend, features, images, make, same, sgd_step
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Memory
from unskew.records import Batch
from unskew.training.finished import trained_method
from unskew.training.make import make_method

TILES = "tiles:base=digits,rows=1200,ratio=4"


@pytest.mark.parametrize("conditional", [False, True])
def test_adversarial_step(conditional):
    method = make("adversarial", {"lambda_": "0.7", "hidden": "5", "conditional": str(conditional)})
    ours, batch = copy.deepcopy(method), batch_of(method)
    sgd_step(ours, batch)
    told = F.one_hot(batch.y, 3).double() if conditional else torch.zeros(12, 0).double()
    method.train()
    guess = method.critics[0].guess
    task = F.cross_entropy(method.model(batch.x), batch.y)
    critic = F.cross_entropy(guess(torch.cat([features(method.model, batch.x), told], 1)), batch.bias[:, 0])
    down = torch.autograd.grad(task, list(method.model.parameters()), retain_graph=True)
    up = torch.autograd.grad(critic, list(method.model.parameters()), retain_graph=True, allow_unused=True)
    descend(critic, guess.parameters())
    with torch.no_grad():
        for parameter, a, b in zip(method.model.parameters(), down, up, strict=True):
            parameter -= 0.1 * (a - (0.7 * b if b is not None else 0))
    same(ours.model, method.model)
    for a, b in zip(ours.critics.parameters(), method.critics.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_adversarial_warm_up_moves_the_critic_and_leaves_the_network_to_the_task():
    method = make("adversarial", {"lambda_": "5", "hidden": "5", "warmup": "1"})
    plain, batch = make("erm"), batch_of(method)
    plain.model.load_state_dict(method.model.state_dict())
    before = copy.deepcopy(method.critics)
    sgd_step(method, batch)
    sgd_step(plain, batch_of(plain))
    same(method.model, plain.model)
    assert not torch.equal(method.critics[0].guess[0].weight, before[0].guess[0].weight)
    assert float(method.rows_seen) == 12


def test_adversarial_mask_starts_open_and_pays_for_what_it_removes():
    data, rows = images()
    method = make_method("adversarial", {"at": "image", "hidden": "8", "beta": "0.5"}, "mlp", {}, data, 0)
    x = data.inputs.x[rows].float() / 255
    method.eval()
    mask = method.mask(x)
    assert mask.shape == (40, 1, 28, 28)
    assert float(mask.detach().min()) > 0.85
    torch.testing.assert_close(method.predict(x), method.model(mask * x))
    batch = Batch(index=rows, x=x, y=data.y[rows], bias=data.bias[rows], group=data.group[rows])
    terms = method.loss(batch)
    torch.testing.assert_close(terms["removed"], 0.5 * (x - mask * x).abs().mean())
    with pytest.raises(UserError, match="needs images"):
        make("adversarial", {"at": "image"})
    with pytest.raises(UserError, match="no layer 'conv7'"):
        make("adversarial", {"at": "conv7"})
    with pytest.raises(UserError, match="must not be negative"):
        make("adversarial", {"lambda_": "-1"})


def test_several_labels_are_weighted_as_in_the_paper():
    generator = torch.Generator().manual_seed(0)
    y = (torch.rand(60, 4, generator=generator) < 0.3).long()
    data = DataSet(
        name="sets", inputs=Memory(torch.randn(60, 2, generator=generator).double()), y=y, classes=("a", "b", "c", "d"),
        split=torch.zeros(60, dtype=torch.long), bias=torch.randint(0, 2, (60, 1), generator=generator), bias_names=("s",),
        bias_values=(("0", "1"),),
    )  # fmt: skip
    method = make("adversarial", {"class_weights": "true", "hidden": "5"}, data=data)
    batch = Batch(index=torch.arange(60), x=data.inputs.x, y=y, bias=data.bias, group=data.group)
    found = method.loss(batch)["task"]
    z, total = method.model(data.inputs.x), 0.0
    for label in range(4):
        weight = float((60 - y[:, label].sum()) / y[:, label].sum())
        p = torch.sigmoid(z[:, label])
        total = total - weight * (y[:, label] * p.log() + (1 - y[:, label]) * (1 - p).log()).mean() / 4
    torch.testing.assert_close(found, total, rtol=1e-5, atol=1e-7)
    with pytest.raises(UserError, match="needs one class per row"):
        make("lff", data=data)


def table(tmp_path, site, n=60):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    np.savez(tmp_path / "d.npz", x=rng.random((n, 4)) + y[:, None], y=y, site=np.array(site))
    return str(tmp_path / "d.npz")


def test_rows_without_the_attribute_train_the_task_and_are_counted(tmp_path):
    source = table(tmp_path, ["a", "b", ""] * 20)
    run = package.train(
        source, "adversarial", model="mlp", out=tmp_path / "r", settings={"data.bias": "site", "train.epochs": "2", "hidden": "4"}
    )
    train = run.config["data"]["rows"]["train"]
    (note,) = (n for n in run.config["data"]["notes"] if "no site" in n)
    assert note.endswith(f"of {train} training rows have no site; its critic does not see them")
    assert 0 < int(note.split()[0]) < train
    rare = table(tmp_path, ["a"] * 57 + ["b"] * 3)
    with pytest.raises(UserError, match="site=b has 2 training rows, but a critic needs 5"):
        package.train(rare, "adversarial", model="mlp", out=tmp_path / "s", settings={"data.bias": "site", "data.holdout": "0.1"})


def test_rows_without_the_attribute_do_not_touch_the_critic():
    data = package.load(TILES)
    method = make_method("adversarial", {"hidden": "8"}, "convnet1", {"dropout": "0"}, data, 0)
    rows = data.rows("train")[:40]
    x, y, bias = data.inputs.x[rows].float() / 255, data.y[rows], data.bias[rows].clone()
    bias[30:] = -1
    batch = Batch(index=rows, x=x.requires_grad_(), y=y, bias=bias, group=bias[:, 0])
    gradient = torch.autograd.grad(method._guess(method.critics[0], method.reverse(x.flatten(1)[:, :64]), bias[:, 0], batch), x)[
        0
    ]
    assert bool((gradient[:30] != 0).any())
    assert bool((gradient[30:] == 0).all())
    bias[1:] = -1  # one known row in the whole batch: nothing to normalise by
    assert method._guess(method.critics[0], x.flatten(1)[:, :64], bias[:, 0], batch).item() == 0


def test_a_layer_that_does_not_exist_is_told_with_those_that_do(tmp_path):
    with pytest.raises(UserError, match="no layer 'conv9'; available: conv1, conv2, conv3"):
        package.train(TILES, "adversarial", model="convnet1", out=tmp_path / "r", settings={"at": "conv9"})
    with pytest.raises(UserError, match="must not be negative"):
        package.train(TILES, "adversarial", model="convnet1", out=tmp_path / "r", settings={"lambda_": "-1"})
    assert not (tmp_path / "r").exists()


def moved(before, after):
    return {k for k, (a, b) in enumerate(zip(before, after, strict=True)) if not torch.equal(a, b)}


def test_the_stage_of_the_head_moves_the_head_and_the_critic_and_ends_when_the_loss_levels_off():
    method = make("adversarial", {"head": "50", "hidden": "5", "lambda_": "1"})
    batch = batch_of(method, rows=64)
    body = [p.detach().clone() for p in method.model.blocks.parameters()]
    head, critic = method.model.head.weight.detach().clone(), method.critics[0].guess[0].weight.detach().clone()
    assert method.stage == "head"
    losses = [float(sgd_step(method, batch, lr=0.05)["task"])]  # the batch is the whole epoch
    assert moved(body, method.model.blocks.parameters()) == set()
    assert not torch.equal(head, method.model.head.weight)
    assert not torch.equal(critic, method.critics[0].guess[0].weight)
    while method.stage == "head":
        losses.append(float(sgd_step(method, batch, lr=0.05)["task"]))
    assert losses[-1] > 0.99 * losses[-2]
    assert all(b <= 0.99 * a for a, b in itertools.pairwise(losses[:-1]))
    assert 2 < len(losses) < 50
    sgd_step(method, batch)
    assert moved(body, method.model.blocks.parameters())  # then everything learns


def test_at_the_image_critic_mask_and_classifier_take_turns():
    data, rows = images()
    settings = {"at": "image", "hidden": "8", "warmup": "0.02", "mask": "0.02", "mask_channels": "4"}
    method = make_method("adversarial", settings, "mlp", {}, data, 0)
    x = data.inputs.x[rows].float() / 255
    batch = Batch(index=rows, x=x, y=data.y[rows], bias=data.bias[rows], group=data.group[rows])
    parts = {"model": method.model, "mask": method.mask, "critics": method.critics}
    learnt = {}
    for _ in range(3):  # of 1,296 rows, a step of 40 is a fiftieth of an epoch and more
        stage = method.stage
        before = {name: [p.detach().clone() for p in part.parameters()] for name, part in parts.items()}
        sgd_step(method, batch)
        learnt[stage] = {name for name, part in parts.items() if moved(before[name], part.parameters())}
    assert learnt == {"warmup": {"critics"}, "mask": {"mask"}, "joint": {"model", "critics"}}


def test_confusion_moves_the_network_and_not_the_critic_and_is_felt_by_a_sure_critic():
    method = make("adversarial", {"confusion": "1", "lambda_": "0", "hidden": "5"})
    batch = batch_of(method)
    with torch.no_grad():
        method.critics[0].guess[-1].bias.copy_(torch.tensor([30.0, 0.0, 0.0]))  # sure of the first value
    method.eval()
    terms = method.loss(batch)
    z = method.critics[0].guess(features(method.model, batch.x))
    torch.testing.assert_close(terms["confusion"], -F.log_softmax(z, 1).mean(1).mean())
    critic = torch.autograd.grad(terms["confusion"], list(method.critics.parameters()), allow_unused=True, retain_graph=True)
    assert all(g is None for g in critic)
    body = torch.autograd.grad(terms["confusion"], list(method.model.blocks.parameters()), allow_unused=True)
    assert any(g is not None and float(g.abs().max()) > 0 for g in body)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"head": "1", "at": "image"}, "head is a stage of a critic at a layer"),
        ({"mask": "1"}, "mask is a stage of the mask; add at=image"),
        ({"critic": "resnet18"}, "critic=resnet18 reads the image alone"),
        ({"critic": "conv"}, "critic=conv needs a layer that is a map"),
        ({"critic": "resnet18", "hidden": "5"}, "hidden is for critic=mlp and conv"),
    ],
)
def test_stages_and_critics_that_do_not_fit_are_refused(settings, said):
    with pytest.raises(UserError, match=said):
        make("adversarial", settings)


def test_frozen_parts_stay_as_they_are(tmp_path):
    settings = {"train.steps": "3", "train.batch": "32", "train.freeze": "model.blocks", "hidden": "4"}
    run = package.train("toy:rows=300", "adversarial", model="mlp", out=tmp_path / "r", settings=settings)
    fresh = make_method("adversarial", {"hidden": "4"}, "mlp", {}, package.load("toy:rows=300"), 0)
    found = trained_method(run)
    for (name, a), b in zip(fresh.model.named_parameters(), found.model.parameters(), strict=True):
        assert torch.equal(a, b) == name.startswith("blocks.")
    with pytest.raises(UserError, match=r"train\.freeze=modle: the method has no such part"):
        package.train("toy:rows=300", model="mlp", out=tmp_path / "w", settings={"train.freeze": "modle"})
    with pytest.raises(UserError, match="leaves nothing to learn in main"):
        package.train("toy:rows=300", model="mlp", out=tmp_path / "w", settings={"train.freeze": "model", "train.steps": "2"})
