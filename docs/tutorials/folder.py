# %% [markdown]
# # A folder and a doubt
#
# You have a folder of photographs, one sub-folder per class, a model that scores well, and a doubt: does it recognise the
# subject, or something that happens to go with it? This takes ten minutes and needs no bias labels.
#
# The photographs here are crops of the two that come with scikit-learn: a building and a flower. In most of the buildings, and
# in few of the flowers, a date is printed in the corner, as an old camera would.

# %%
import os
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from sklearn.datasets import load_sample_images

import unskew

SMOKE = bool(os.environ.get("UNSKEW_SMOKE"))  # small sizes, for a test
ROWS, SIDE = (120, 64) if SMOKE else (600, 96)
random = np.random.default_rng(0)

for k in range(ROWS):
    building = k % 2 == 0
    photo = load_sample_images().images[0 if building else 1]
    side = int(random.integers(120, 240))
    top, left = (int(random.integers(0, length - side)) for length in photo.shape[:2])
    picture = Image.fromarray(photo[top : top + side, left : left + side]).resize((SIDE, SIDE))
    if random.random() < (0.95 if building else 0.05):
        ImageDraw.Draw(picture).text((SIDE - 40, SIDE - 14), "98 7 14", fill=(255, 160, 40))
    folder = Path("photos", "building" if building else "flower")
    folder.mkdir(parents=True, exist_ok=True)
    picture.save(folder / f"{k:04}.jpg", quality=90)

# %% [markdown]
# ## What gives the class away?
#
# `audit` reads the class from many simple things at once: colours, borders, corners, texture, file facts, and so on. Each is
# judged on rows that its reader was not fitted on. A *shortcut* is something that cannot be content, or that a simple model
# follows; a *question* is something that only you can answer.

# %%
found = unskew.audit("photos", out="audit", trial=not SMOKE, slices=0 if SMOKE else 600)
print(found.verdict)
for finding in found.findings[:6]:
    print(f"{finding.verdict:9} {100 * finding.bias:4.0f} %  {finding.label}")

# %% [markdown]
# The page `audit/audit.html` shows the same with pictures, and `found.plot()` is its first chart. `found.scores` is a frame with a row
# per photograph: sort by a score to see which ones the finding tells best, and which ones it misleads.

# %%
name = f"score {found.findings[0].name}"
for row in found.scores.sort(name).head(3).iter_rows(named=True):
    print(Path(row["path"]).name, row["label"], f"{row[name]:.2f}")
found.plot().save("readable.svg")  # in a notebook, found.plot() shows it

# %% [markdown]
# ## Train, with and without the advice
#
# `erm` is plain training. `advised` trains what the audit's trial supports, and plain training if it supports nothing.

# %%
quick = {"train.steps": 20, "data.size": 32} if SMOKE else {}
network = "small-resnet" if SMOKE else ""
plain = unskew.train("photos", "erm", model=network, out="runs/erm", settings=quick)
advised = unskew.train("photos", "erm" if SMOKE else "advised", model=network, out="runs/advised", settings=quick)
for run in (plain, advised):
    judged = unskew.evaluate(run)
    print(run.path.name, judged.groups, judged.verdict.sentence, sep="\n  ")

said = plain.predictions.filter(split="test")  # a frame: one row per photograph, with its logits
print(said.head(3))

# %% [markdown]
# There is no bias column, so the figures above are of rows like the ones you have: 95 % of the buildings carry the date. The
# question is what happens without it. `reliance` covers parts of the picture and asks whether the model still knows.

# %%
used = unskew.evaluate(plain, reliance=True, reliance_rows=60 if SMOKE else 300)
print(used.json()["reliance"]["sentence"])

# %% [markdown]
# If nothing matters more than a random change of the same size, the model does not live on what was taken away, and the doubt was
# unfounded for this model, however well the date can be read from the data. If something does, train with `advised`, or collect
# photographs without the date.
