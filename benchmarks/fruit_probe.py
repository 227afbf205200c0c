"""A linear probe on real photographs: features with ImageNet weights against the same network with random weights.

python -m benchmarks fruit_probe

Downloads the photographs (45 MB) and the weights (17 MB) once. Prints the accuracy on the 661 test photographs of a logistic
regression fitted on the 675 training ones, for coarse and fine classes.
"""

import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unskew.data import load
from unskew.features import compute, spec


def main() -> None:
    for level in ("coarse", "fine"):
        data = load(f"fruit:level={level}")
        for pretrained in ("true", "false"):
            name = f"layer:model=efficientnet-lite0,pretrained={pretrained}"
            index, blocks = compute(data, [spec(name)], torch.arange(len(data)))
            x, y, split = blocks[name].numpy(), data.y[index].numpy(), data.split[index].numpy()
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, C=0.01)).fit(x[split == 0], y[split == 0])
            print(
                f"{level} classes, ImageNet weights {pretrained}: {100 * probe.score(x[split == 2], y[split == 2]):.1f} %",
                flush=True,
            )


if __name__ == "__main__":
    main()
