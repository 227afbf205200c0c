# %% [markdown]
# # My own method in one file, beside the papers
#
# You have an idea for a loss. A method is one file with a `Config` and a `loss`, and it then has everything that the papers'
# methods have: exact resume, settings on the command line, selection, groups, pages, suites.

# %%
import os
import sys
from pathlib import Path

import unskew

SMOKE = bool(os.environ.get("UNSKEW_SMOKE"))  # small sizes, for a test
Path("mine").mkdir(exist_ok=True)
Path("mine/__init__.py").touch()
Path("mine/focal.py").write_text('''
r"""focal: rows that are already right count less.

.. math::  L = (1 - p_y)^\\gamma \\, (-\\log p_y)

Source: Lin et al., "Focal loss for dense object detection", ICCV 2017.
Differs: nothing.
"""

from dataclasses import dataclass

from unskew.losses import task_loss
from unskew.methods._contract import Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    gamma: float = 2.0  # 0: cross-entropy


class Focal(Method):
    Config = Config

    def loss(self, batch):
        nats = task_loss(self.predict(batch.x), batch.y)
        return {"focal": batch.mean((1 - (-nats).exp()) ** self.cfg.gamma * nats)}
''')
sys.path.insert(0, ".")

# %% [markdown]
# The dotted name is the method. Its settings are those of its `Config`. On the same digits, in colours that agree with the class
# in 95 % of the training rows, with the same network and steps:

# %%
SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.95"
steps = {"train.steps": 10 if SMOKE else 300}
for method, settings in (("erm", {}), ("mine.focal", {"gamma": 2}), ("pgd", {}), ("lff", {}), ("group_dro", {})):
    if SMOKE and method == "pgd":
        continue
    run = unskew.train(SOURCE, method, model="convnet1", out=f"runs/{method}", settings={**steps, **settings})
    groups = unskew.evaluate(run).groups
    print(f"{method:11} aligned {100 * groups.aligned.value:5.1f} %, conflicting {100 * groups.conflicting.value:5.1f} %")

# %% [markdown]
# One seed says little. A suite repeats it over seeds with spread, in parallel, and resumes: see [suites](../suites.md).
# `unskew new method NAME` writes such a file with its test; CONTRIBUTING says how it becomes part of the project.
