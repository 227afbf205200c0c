"""What a suite's runs need is looked at before the first of them trains: a suite that cannot succeed is refused."""

from collections.abc import Iterable, Mapping
from typing import Any

from unskew.core import config, registry
from unskew.core.errors import UserError
from unskew.core.settings import Settings
from unskew.data.dataset import DataSet
from unskew.data.reading import DataConfig
from unskew.data.sources import load
from unskew.evaluation._contract import questions
from unskew.suites.figures import COST, STAGES, argument
from unskew.suites.reader import Suite, Task
from unskew.training.make import check_data, make_method, training_data
from unskew.training.selection import check
from unskew.training.settings import check_method, run_config, split_method


def check_tasks(suite: Suite, tasks: Iterable[Task]) -> None:
    """Build every method once on the data that it will see, and ask whether that data has what the columns name."""
    done: set[tuple[str, ...]] = set()
    read: dict[str, DataSet] = {}
    for task in tasks:
        key = (task.data, task.method, task.model, str(_without_place(task.settings)), str(task.judging))
        if key in done or task.judge:
            continue
        done.add(key)
        settings = {k: v for k, v in task.settings.items() if "{shared." not in v}
        try:
            _check(task, settings, list(suite.columns(task.data)), read)
        except UserError as error:
            kind = "shared" if task.shared else "method"
            raise suite.wrong(f"{task.id} cannot succeed: {error}", f"[{kind}.{task.name}") from None


def _without_place(settings: Mapping[str, str]) -> dict[str, str]:
    """What may differ between settings of {at} and seeds only is not built again."""
    return {k: v for k, v in settings.items() if k.startswith(("model.", "data.", "select.")) or "." not in k}


def _check(task: Task, settings: dict[str, str], columns: list[str], read: dict[str, DataSet]) -> None:
    if task.method == "dependency":
        return
    reading = Settings.of(settings)["data"]
    place = f"{task.data} {sorted(reading.items())}"
    if place not in read:
        read.clear()  # one data set at a time
        read[place] = load(task.source, config.build(DataConfig, reading, "data."))
    data = read[place]
    check_questions(task.json(), data, columns)
    before, name = split_method(task.method)
    given = Settings.of(settings).under(before)[1] if before else Settings.of(settings)
    cfg = run_config(given)
    check(cfg.select.rule, data)
    if not task.model or name not in registry.names("methods"):
        return
    if check_method(name).staged:
        make_method("erm", {}, task.model, cfg.model, data, task.seed)  # its last stage
        return
    used = training_data(name, cfg.method, data)
    make_method(name, cfg.method, task.model, cfg.model, used, task.seed)
    check_data(name, cfg.method, data)


def check_questions(task: Mapping[str, Any], data: DataSet, columns: Iterable[str]) -> None:
    """Reject a data set that lacks a split of a column, cannot answer a question, or cannot choose among candidates."""
    answers = {key for question in questions() for key in question.keys}
    named = {c.partition(".")[0] for c in columns if "." in c and c != COST} - {*answers, *STAGES}
    if task["shared"]:
        return
    for split in {task["split"], *named} - {"test"}:
        data.rows(split)
    if task.get("choose"):
        check(task["choose"], data)
    if task["judging"].get("on"):
        return  # another source is judged
    for question in questions():
        if question.wanted(task["judging"]):
            given = {name: argument(name, task["judging"][name]) for name in question.arguments if name in task["judging"]}
            question.check(data, question.options(**given))
