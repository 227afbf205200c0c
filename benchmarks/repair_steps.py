"""A step of REPAIR on ten million rows over a step on a hundred thousand; in both forms at a hundred thousand.

python -m benchmarks repair_steps [--rows 10000000] [--rounds 3]

Whole epochs would take minutes, so a part of an epoch is timed, and what an epoch spends on order and sums is divided by its steps.
"""

import argparse
import time

import torch

from benchmarks._registry import Figure, in_turn, median, ratio
from unskew.core.rng import stream
from unskew.repairs.repair import Game, LargeGame

BATCH, STEPS = 128, 400


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=10_000_000)
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args(words)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(0)
    games = {}
    for name, rows, form in (("1e5", 100_000, Game), ("1e5 large", 100_000, LargeGame), ("many", given.rows, LargeGame)):
        y = torch.randint(0, 10, (rows,), generator=g)
        games[name] = form(torch.rand(rows, 3, generator=g), y, 1e-3, 0.9, 10.0, 0)
    times = in_turn({name: lambda game=game: some_steps(game) for name, game in games.items()}, given.rounds)
    started = time.process_time()
    game = games["many"]
    game._sum()
    order = torch.randperm(given.rows, generator=stream(0, "repair", 0))
    game.read(order), game.y[order]
    spread = (time.process_time() - started) / (given.rows / BATCH)
    steps = {name: [t / STEPS for t in seconds] for name, seconds in times.items()}
    steps["many"] = [t + spread for t in steps["many"]]
    more = {f"{name} (ms)": round(1000 * median(t), 4) for name, t in steps.items()} | {
        "of it per epoch (ms)": round(1000 * spread, 4)
    }
    what = f"a step of REPAIR on {given.rows:,} rows over one on 100,000 rows, batch 128"
    yield Figure("REPAIR, many rows", what, ratio(steps["many"], steps["1e5"]), most=1.5, more=more)


def some_steps(game):
    order = torch.randint(0, len(game.y), (STEPS, BATCH))
    for rows in order:
        rows = rows.unique()
        game.step(game.read(rows), game.y[rows], game.place[rows])
