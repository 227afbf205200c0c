# %% [markdown]
# # A column I must not leak
#
# Your task has several labels per row, and a column that predictions must not give away: a person's sex, the hospital, the
# region. An auditor will ask three things. How much of the column do the labels themselves give away (dataset leakage)? How much
# do the predictions (model leakage)? Is the model worse than its data (amplification)?
#
# `tiles` is a built-in stand-in for photographs of people with objects: which objects are in a scene depends on who the person
# is. The column is `person`.

# %%
import os

import unskew
from unskew.measure.leakage import Attack

SMOKE = bool(os.environ.get("UNSKEW_SMOKE"))  # small sizes, for a test
SOURCE = f"tiles:base=digits,ratio=3,rows={400 if SMOKE else 2000}"
steps = {"train.steps": 10 if SMOKE else 400}
attack = (
    Attack(rounds=2, epochs=1, min_steps=10) if SMOKE else Attack(rounds=3, epochs=20, min_steps=500)
)  # the default is longer
data = unskew.load(SOURCE)
print(data)

# %% [markdown]
# ## What the labels tell
#
# `audit` measures the association of the column with each label, and trains attackers that guess it from the labels alone.

# %%
found = unskew.audit(SOURCE, bias=["person"], out="audit", representations=["color:kind=mean"], attack=attack)
for column in found.columns:
    told = column.leakage
    print(
        f"{column.name}: guessed from the labels in {100 * told.dataset:.1f} % of the rows, by chance {100 * told.chance:.1f} %"
    )

# %% [markdown]
# ## What a model tells
#
# Plain training, and training against a critic that tries to read the column from the last layer. F1 stands beside leakage:
# a model that says nothing leaks nothing.

# %%
for method in ("erm", "adversarial"):
    run = unskew.train(SOURCE, method, out=f"runs/{method}", settings=steps)
    judged = unskew.evaluate(run, leakage=True, attack=attack).json()
    leak = judged["leakage"]
    print(f"{method}: F1 {100 * judged['f1_macro']:.1f} %, the column is guessed in {100 * leak['model']:.1f} %")
    print(f"  at the model's F1 the labels give away {100 * leak['dataset_at_f1']:.1f} %")

# %% [markdown]
# ## A page for the auditor
#
# Groups, error rates by the column's values, calibration and leakage with their intervals, on one page that opens from disk.

# %%
print(unskew.report(["runs/erm", "runs/adversarial"], "report.html"))
