"""What a run writes down of itself."""

import unskew as package

SMALL = {"train.epochs": 2, "train.batch": 64}
DIGITS = "colored-mnist:base=digits,ratio=0.95"


def test_balanced_sampling_is_said_to_use_the_bias(tmp_path):
    run = package.train(DIGITS, out=tmp_path / "r", model="mlp", settings=SMALL | {"train.sampler": "balanced"})
    assert run.config["labels"]["training"] == ["bias", "y"]
