"""representation_bias on 10,000 x 32 features against an earlier commit, and on a million rows of 16.

python -m benchmarks bias_since [--commit 95a7287] [--rounds 3] [--skip-million]

Each call runs in a process of its own, the two commits in turn; processor time of the call alone.
"""

import argparse

from benchmarks._registry import ROOT, Figure, elsewhere, median, package_at, ratio

CODE = """
import json, time, torch
torch.set_num_threads(1)
from unskew.measure.representation_bias import representation_bias
g = torch.Generator().manual_seed(0)
y = torch.randint(0, 10, ({rows},), generator=g)
x = torch.randn(10, {width}, generator=g)[y] * 0.3 + torch.randn({rows}, {width}, generator=g)
representation_bias(x[:500], y[:500])
t = time.process_time()
e = representation_bias(x, y)
print(json.dumps([time.process_time() - t, e.bias, e.low, e.high, e.chance_high]))
"""


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--commit", default="95a7287")
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--skip-million", action="store_true")
    given = asked.parse_args(words)
    small = CODE.format(rows=10_000, width=32)
    with package_at(given.commit) as before:
        pairs = [(elsewhere(small, before), elsewhere(small, ROOT)) for _ in range(given.rounds)]
    then, now = ([pair[k][0] for pair in pairs] for k in (0, 1))
    more = {given.commit: median(then), "now": median(now), "bias": [round(pairs[0][k][1], 6) for k in (0, 1)]}
    what = f"representation_bias, 10,000 x 32, 10 classes: commit {given.commit} over now"
    yield Figure("representation bias", what, ratio(then, now), least=2.0, more=more)
    if not given.skip_million:
        seconds, bias, low, high, _ = elsewhere(CODE.format(rows=1_000_000, width=16), ROOT)
        what = "representation_bias, 1,000,000 x 16, 10 classes: seconds of one processor"
        yield Figure("representation bias, a million rows", what, None, value=round(seconds, 2), unit="s", most=12.0,
                     more={"bias": bias, "low": low, "high": high})  # fmt: skip
