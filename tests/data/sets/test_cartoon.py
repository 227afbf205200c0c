"""cartoon: drawn faces have the colours they are said to have; the real set is read in its own layout, or refused with a reason."""

import numpy as np
import pytest
import torch
from PIL import Image

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data import load
from unskew.data.sets.cartoon import FACE, HAIR, _with_share, draw


def test_face_and_hair_have_their_colours():
    hair, face = torch.arange(4).repeat_interleave(4).repeat(40), torch.arange(4).repeat(160)
    x = draw(hair, face, 64, 0.0, stream(0, "test")).float() / 255
    # The middle of the picture is face but for eyes, mouth and rims: most of its pixels have the face's colour.
    middle = x[:, :, 24:44, 24:40].flatten(2)
    far = torch.stack([(middle - torch.tensor(c)[:, None]).abs().amax(1) for c in FACE.values()])
    most = (far < 0.08).sum(2).argmax(0)
    assert (most == face).all()
    for k, colour in enumerate(HAIR.values()):
        close = (x[hair == k] - torch.tensor(colour)[:, None, None]).abs().amax(1) < 0.03
        share = close.float().mean((1, 2))
        assert share.min() > 0.01  # every face has hair of its colour, whatever the cut; some of it is in the shade
        other = (x[hair == (k + 1) % 4] - torch.tensor(colour)[:, None, None]).abs().amax(1) < 0.03
        assert other.float().mean() < 0.1 * close.float().mean()


def test_training_is_biased_and_the_test_part_is_not_and_stays_the_same():
    made = load("cartoon:rows=4000,ratio=0.9,size=16,seed=1")
    train, test = made.rows("train"), made.rows("test")
    assert [len(made.rows(s)) for s in ("train", "val", "test")] == [3200, 400, 400]
    share = (made.y == made.bias[:, 0]).double()
    assert abs(share[train].mean() - 0.9) < 4 * (0.09 / 3200) ** 0.5
    assert abs(share[test].mean() - 0.25) < 4 * (0.1875 / 400) ** 0.5
    other = load("cartoon:rows=4000,ratio=0.5,size=16,seed=1")
    assert torch.equal(other.inputs.rows(test)[0], made.inputs.rows(test)[0])
    assert torch.equal(other.bias[test], made.bias[test])


def test_rows_are_left_out_until_the_share_is_right():
    aligned = torch.arange(1000) % 4 == 0
    part = torch.arange(1000) < 800
    for ratio in (0.99, 0.5, 0.1, 1.0, 0.0):
        kept = _with_share(aligned, part, ratio, stream(0, "t"))
        assert not (kept & ~part).any()
        assert (kept & aligned).sum() / kept.sum() == pytest.approx(ratio, abs=0.003)
    assert (_with_share(aligned, part, 0.99, stream(0, "t")) & aligned).sum() == 200  # none of the scarce kind is lost


@pytest.fixture
def cartoon_set(tmp_path):
    """The layout of cartoonset10k: 200 faces, hair and face colours of 10 and 11 values."""
    g = np.random.default_rng(0)
    for k in range(200):
        name = tmp_path / f"cs{k:019d}"
        hair, face = g.integers(10), g.integers(11)
        name.with_suffix(".csv").write_text(f'"eye_angle", 1, 3\n"hair_color", {hair}, 10\n"face_color", {face}, 11\n')
        pixels = np.full((20, 20, 4), 255, dtype=np.uint8)
        pixels[..., 0], pixels[..., 1] = 20 * hair, 20 * face
        pixels[0, 0] = 0  # a transparent corner, which is white when seen
        Image.fromarray(pixels).save(name.with_suffix(".png"))
    return tmp_path


def test_the_real_set_is_read_from_disk(cartoon_set):
    made = load(f"cartoon:root={cartoon_set},ratio=0.8,size=20")
    assert made.shape == (3, 20, 20)
    assert len(made.rows("test")) == 20
    train = made.rows("train")
    assert (made.y == made.bias[:, 0])[train].double().mean() == pytest.approx(0.8, abs=0.02)
    x = made.inputs.rows(train)[0]
    assert torch.equal(x[:, 0, 9, 9].long() // 20 * 4 // 10, made.y[train])
    assert torch.equal(x[:, 1, 9, 9].long() // 20 * 4 // 11, made.bias[train, 0])


def test_a_wrong_folder_is_refused(cartoon_set, tmp_path_factory):
    with pytest.raises(UserError, match="no faces of the Cartoon Set"):
        load(f"cartoon:root={tmp_path_factory.mktemp('empty')}")
    first = sorted(cartoon_set.glob("*.csv"))[0]
    text = first.read_text()
    for wrong, said in {
        "hair_color": ("no hair_color", text.replace("hair_color", "hat_color")),
        "number": ("must be attribute, value, number", text.replace(", 10", ", ten")),
        "range": ("must be below its number", '"hair_color", 10, 10\n"face_color", 0, 11\n'),
    }.values():
        first.write_text(said)
        with pytest.raises(UserError, match=wrong):
            load(f"cartoon:root={cartoon_set}")
    first.write_text(text)
    first.with_suffix(".png").unlink()
    with pytest.raises(UserError, match="is missing, but"):
        load(f"cartoon:root={cartoon_set}")
