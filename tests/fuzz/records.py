"""Kinds of cases whose files are our own: runs, states, tables of weights, audits, and what `auto` and the explorer keep."""

import json
import shutil
from pathlib import Path

from hypothesis import strategies as st

from tests.fuzz import templates
from tests.fuzz.damage import byte_damage, hostile_values, hurt_bytes, hurt_json, hurt_value, json_damage
from tests.fuzz.kinds import KINDS, TRAIN, Plan, kind, words
from tests.fuzz.served import READING, WRITING, ask_hostile_things

__all__ = ["KINDS"]
FIELDS = ("tag", "value", "ids", "view", "where", "sort", "descending", "label", "from", "count", "row")


@kind(
    file=st.sampled_from(["config.json", "done.json", "model.safetensors", "log.jsonl", "predictions/test.parquet", "metrics-test.json"]),
    how=st.sampled_from(["json", "json", "bytes", "missing", "empty", "list"]), edits=json_damage, damage=byte_damage,
    verb=st.sampled_from(["evaluate", "evaluate", "evaluate", "start", "start", "report", "layer", "export", "export"]),
    form=st.sampled_from(["torchscript", "safetensors", "onnx", "croissant", "pickle"]),
)  # fmt: skip
def run_folder(plan: Plan, root: Path, made: Path) -> list[str]:
    """A run whose files are missing, cut, damaged, contradictory or of something else; a helper lies beside it."""
    shutil.copytree(made / "run", root / "run")
    for name in ("helper.py", "helper_pkg/__init__.py", "helper_pkg/mine.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("raise SystemExit(77)\n")
    path = root / "run" / plan["file"]
    _hurt(path, plan)
    if plan["verb"] == "report":
        return ["report", "run", "--out", "page.html"]
    if plan["verb"] == "export":
        return ["export", "run", "--as", plan["form"], "--out", "net"]
    if plan["verb"] == "layer":
        return ["audit", "toy:rows=60", "--representation", "layer:run=run", "--no-trial", "--out", "out"]
    if plan["verb"] == "start":
        return ["train", "toy:rows=60", *TRAIN, "train.start=run", "--out", "out"]
    return ["evaluate", "run"]


def _hurt(path: Path, plan: Plan) -> None:
    if plan["how"] == "missing":
        path.unlink()
    elif plan["how"] in ("empty", "list"):
        path.write_bytes(b"" if plan["how"] == "empty" else b"[1, 2]")
    elif plan["how"] == "json" and path.suffix == ".json":
        hurt_json(path, plan["edits"])
    else:
        hurt_bytes(path, plan["damage"])


@kind(
    edits=json_damage, damage=byte_damage, how=st.sampled_from(["facts", "facts", "tensors", "bytes", "missing", "step"]),
    file=st.sampled_from(["state.safetensors", "state.safetensors", "best.safetensors", "config.json"]),
    step=st.sampled_from([10**9, -1, 6, 0, 5, "x"]),
)  # fmt: skip
def state(plan: Plan, root: Path, made: Path) -> list[str]:
    """A training that was interrupted, whose saved state is damaged or claims what cannot be."""
    shutil.copytree(made / "state", root / "out")
    path = root / "out" / plan["file"]
    if plan["how"] in ("facts", "tensors", "step") and path.suffix == ".safetensors":
        from safetensors import safe_open
        from safetensors.numpy import save_file

        with safe_open(path, framework="np") as opened:
            facts = json.loads(opened.metadata()["unskew"])
            tensors = {k: opened.get_tensor(k) for k in opened.keys()}  # noqa: SIM118
        if plan["how"] == "step":
            facts["step"] = plan["step"]
        elif plan["how"] == "facts":
            facts = hurt_value(facts, plan["edits"])
        else:
            name = sorted(tensors)[int(plan["edits"][0]["at"] * (len(tensors) - 1))]
            tensors[name] = (
                tensors[name].reshape(-1)[:1] if plan["edits"][0]["op"] == "replace" else tensors.pop(name).reshape(-1)
            )
        save_file(tensors, path, metadata={"unskew": json.dumps(facts)})
    else:
        _hurt(path, {**plan, "how": "missing" if plan["how"] == "missing" else "bytes"})
    return [*templates.STATE, "--out", "out"]


@kind(
    edits=json_damage, damage=byte_damage, how=st.sampled_from(["bytes", "metadata", "values", "index", "column", "none"]),
    value=hostile_values, use=st.sampled_from(["weights", "keep", "again", "report"]),
)  # fmt: skip
def weights(plan: Plan, root: Path, made: Path) -> list[str]:
    """A table of weights with damaged bytes, metadata, ids or values, for train, data.keep, repair and report."""
    import polars as pl

    for ending in ("parquet", "json", "html"):
        shutil.copy(made / f"w.{ending}", root / f"w.{ending}")
    path = root / "w.parquet"
    if plan["how"] == "bytes":
        hurt_bytes(path if plan["use"] != "report" else root / "w.json", plan["damage"])
    elif plan["how"] != "none":
        frame, facts = pl.read_parquet(path), json.loads(pl.read_parquet_metadata(path)["unskew"])
        if plan["how"] == "metadata":
            facts = hurt_value(facts, plan["edits"])
        elif plan["how"] == "column":
            frame = frame.drop("weight" if plan["damage"][0]["at"] < 0.5 else "index")
        else:
            name = "weight" if plan["how"] == "values" else "index"
            hostile = [plan["value"] if not isinstance(plan["value"], (list, dict)) else None] * len(frame)
            frame = frame.with_columns(
                pl.Series(name, [str(v) if isinstance(v, int) and abs(v) > 2**62 else v for v in hostile], strict=False)
            )
        frame.write_parquet(path, metadata={"unskew": json.dumps(facts)})
        if plan["use"] == "report":
            hurt_json(root / "w.json", plan["edits"])
    source = "planted:rows=60,bias=0.5"
    if plan["use"] == "report":
        shutil.copytree(made / "run", root / "run")
        return ["report", "run", "--repair", "w.parquet", "--out", "page.html"]
    if plan["use"] == "again":
        return [*templates.REPAIR, "--out", "w.parquet"]
    given = ["--weights", "w.parquet"] if plan["use"] == "weights" else ["data.keep=w.parquet"]
    return ["train", source, *TRAIN, *given, "--out", "out"]


@kind(
    file=st.sampled_from(["audit.json", "audit.json", "scores.parquet"]),
    how=st.sampled_from(["json", "json", "bytes", "missing", "empty", "list"]),
    edits=json_damage, damage=byte_damage, use=st.sampled_from(["again", "report", "export"]),
    form=st.sampled_from(["croissant", "spotlight", "fiftyone", "onnx"]),
)  # fmt: skip
def audit_folder(plan: Plan, root: Path, made: Path) -> list[str]:
    """An audit whose files are damaged, missing or of something else, read by audit, report and export."""
    shutil.copytree(made / "audit", root / "out")
    _hurt(root / "out" / plan["file"], plan)
    if plan["use"] == "again":
        return [*templates.AUDIT, "--out", "out"]
    if plan["use"] == "export":
        return ["export", "out", "--as", plan["form"], "--out", "card"]
    shutil.copytree(made / "run", root / "run")
    return ["report", "run", "--audit", "out", "--out", "page.html"]


@kind(
    file=st.sampled_from(["state.json", "state.json", "results/final-erm.json", "auto.json", "audit/audit.json", "models/erm/config.json"]),
    how=st.sampled_from(["json", "json", "bytes", "missing", "empty", "list"]), edits=json_damage, damage=byte_damage,
    budget=st.sampled_from(["60s"] * 6 + ["1s", "0", "-1min", "1e99h", "nan", "soon"]),
)  # fmt: skip
def auto_folder(plan: Plan, root: Path, made: Path) -> list[str]:
    """The folder of an `auto` whose files are damaged, missing or of something else; budgets of every kind."""
    shutil.copytree(made / "auto", root / "out")
    _hurt(root / "out" / plan["file"], plan)
    return [*templates.AUTO, "--budget", plan["budget"], "--out", "out"]


@kind(
    place=st.sampled_from(["audit", "run", "w.parquet", "vectors", "toy:rows=60", "nothing", "pictures"]), write=st.booleans(),
    damage=st.none() | byte_damage, tags=st.sampled_from(["none", "none", "bytes", "alien", "folder"]),
    asked=st.lists(
        st.tuples(st.sampled_from(READING + WRITING), st.dictionaries(st.sampled_from(FIELDS), hostile_values | words)), max_size=6
    ),
)  # fmt: skip
def explorer(plan: Plan, root: Path, made: Path) -> list[str]:
    """The explorer on damaged folders and tables of tags, asked for odd things over its own address."""
    place = plan["place"]
    if (made / place).is_dir():
        shutil.copytree(made / place, root / place)
        files = sorted(p for p in (root / place).rglob("*") if p.is_file())
        if plan["damage"]:
            hurt_bytes(files[int(plan["damage"][0]["at"] * (len(files) - 1))], plan["damage"])
    elif (made / place).is_file():
        for ending in ("parquet", "json", "html"):
            shutil.copy(made / f"w.{ending}", root / f"w.{ending}")
        if plan["damage"]:
            hurt_bytes(root / place, plan["damage"])
    if plan["tags"] == "folder":
        (root / "tags.parquet").mkdir()
    elif plan["tags"] != "none":
        shutil.copy(made / "w.parquet", root / "tags.parquet")
        if plan["tags"] == "bytes":
            hurt_bytes(root / "tags.parquet", plan["damage"] or [{"op": "cut", "at": 0.5, "value": 0}])
    ask_hostile_things(plan["asked"])
    return ["explore", place, "--tags", "tags.parquet", *(["--write"] if plan["write"] else [])]
