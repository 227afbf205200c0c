r"""celeba: faces with forty attributes, read from disk. One attribute is the class, another the bias.

.. math::  (x_i, y_i, b_i) = (\text{image}, [\text{target}_i = 1], [\text{bias}_i = 1])

PGD's task: `target=Heavy_Makeup`, `bias=Male`; any two attributes can be used. Splits are the official partition: 0 train, 1 val,
2 test. The root holds img_align_celeba/, list_attr_celeba.txt and list_eval_partition.txt, as distributed.

Source: Liu et al., "Deep learning face attributes in the wild", ICCV 2015 (for non-commercial research); the task: "Mitigating
Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, Table 3.
Differs: nothing; aligned pairs are those that occur together more often than by chance in the training rows and are the common
case of their class.
"""

from dataclasses import dataclass

from unskew.core.errors import UserError, suggest
from unskew.data.readers.listing import Listing, Need, Row, check_root, read_lines

NEEDS = (
    Need("img_align_celeba/", "202,599 aligned and cropped faces, from 000001.jpg on (img_align_celeba.zip)"),
    Need("list_attr_celeba.txt", "forty attributes, 1 or -1, of every face"),
    Need("list_eval_partition.txt", "the official split of every face: 0, 1 or 2"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    target: str = "Heavy_Makeup"  # attribute to recognise
    bias: str = "Male"  # attribute of the bias column


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "celeba")
    path = root / "list_attr_celeba.txt"
    names = read_lines(path, lambda words: words, "attribute names", skip=1)[0]
    for name in (cfg.target, cfg.bias):
        if name not in names:
            raise UserError(f"{path}: no attribute {name!r}{suggest(name, names)}")
    t, b = names.index(cfg.target) + 1, names.index(cfg.bias) + 1
    values = {"1": 1, "-1": 0}
    faces = read_lines(
        path, lambda w: (w[0], values[w[t]], values[w[b]], w[len(names)]), f"a file name and {len(names)} attributes", skip=2
    )
    parts = dict(
        read_lines(root / "list_eval_partition.txt", lambda w: (w[0], ("train", "val", "test")[int(w[1])]), "file and split")
    )
    unknown = [f for f, *_ in faces if f not in parts]
    if unknown:
        raise UserError(f"{root / 'list_eval_partition.txt'}: no split for {unknown[0]} and {len(unknown) - 1} more")
    classes, kinds = (f"not {cfg.target}", cfg.target), (f"not {cfg.bias}", cfg.bias)
    rows = [Row(f"img_align_celeba/{f}", classes[y], parts[f], {cfg.bias: kinds[a]}) for f, y, a, _ in faces]
    return Listing("celeba", root, rows, classes, {cfg.bias: kinds})
