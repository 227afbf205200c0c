"""Lines of a results file of the toy suite, made up."""

from unskew.pages.results import COLUMNS

LINE = dict.fromkeys(COLUMNS, "") | {
    "suite": "rebias-toy", "scale": "paper", "data": "toy", "figure": "plain", "seconds": "10.0", "commit": "abc",
    "command": "unskew bench rebias-toy --scale paper",
}  # fmt: skip


def line(method, seed, value, **more):
    return LINE | {"method": method, "seed": str(seed), "value": str(value)} | more
