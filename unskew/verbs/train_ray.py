"""`train` on a Ray cluster: Ray Train starts as many processes as asked for, and starts them again when one is lost.

Every process runs the verb as it would under torchrun. What it saves in the run's folder is all that a restart needs, so the folder
must be on storage that every node sees, and a run that lost a worker ends with the weights of one that did not.
"""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.core.executor import check_nodes, check_ray, ray_cluster
from unskew.core.executor import ray_amount as amount
from unskew.core.files import parents, part_path
from unskew.records import Run
from unskew.verbs.train import train

RESTARTS = 8  # of all workers, after one was lost


def train_on_ray(
    source: Any, method: str = "erm", *, out: str | Path, workers: int = 1, address: str = "", gpus: float = 0.0, **words: Any
) -> Run:
    """`train` with `workers` processes of a cluster, each with a core and `gpus` GPUs; other words are those of `train`."""
    check_ray(address)
    out = Path(out).absolute()
    if workers < 1:
        raise UserError(f"--workers {workers}: must be at least 1")
    if isinstance(source, str) and Path(source).exists():
        source = str(Path(source).absolute())  # a worker has a working directory of its own
    if isinstance(words.get("weights"), str | Path):
        words["weights"] = Path(words["weights"]).absolute()
    place = part_path(out.with_name(f"{out.name}.ray"))  # what Ray Train writes about itself
    with ray_cluster(address), parents(place):
        check_nodes(address)
        for what, wanted in (("CPU", float(workers)), ("GPU", workers * gpus)):
            if amount(address, what) < wanted:
                raise UserError(f"--workers {workers}: needs {wanted:g} {what}s, and the cluster has {amount(address, what):g}")
        try:
            _fit({**words, "source": source, "method": method, "out": out}, place, workers, gpus)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return Run(out)


def _fit(given: dict[str, Any], place: Path, workers: int, gpus: float) -> None:
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    logging.getLogger("ray.train").setLevel(logging.ERROR)  # standard error has room for our own lines
    each = {"CPU": 1.0, **({"GPU": gpus} if gpus else {})}
    trainer = TorchTrainer(
        _work,
        train_loop_config={"given": given, "place": str(place)},
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=gpus > 0, resources_per_worker=each),
        run_config=RunConfig(name="train", storage_path=str(place), failure_config=FailureConfig(max_failures=RESTARTS)),
    )
    try:
        trainer.fit()
    except Exception as error:
        line = str(error).strip().splitlines()
        raise UserError(
            f"the training on Ray ended: {line[-1] if line else type(error).__name__}; run it again to resume"
        ) from error
    refused = _refusal(place)
    if refused.is_file():
        raise UserError(refused.read_text(encoding="utf-8"))


def _refusal(place: Path) -> Path:
    return place / "refused.txt"


def _work(config: dict[str, Any]) -> None:
    """One worker. A request that is wrong is noted and not tried again: workers that are started after it end at once."""
    import torch

    refused = _refusal(Path(config["place"]))
    if refused.is_file():
        return
    os.environ["TORCHELASTIC_RUN_ID"] = "ray"  # Fabric then takes rank and world from the environment, as under torchrun
    torch.set_num_threads(1)
    try:
        train(**config["given"])
    except UserError as error:
        refused.write_text(str(error), encoding="utf-8")
        raise
