"""The command line, a file per verb: parse the words, make one call, print the result."""

from unskew.cli import audit, bench, data, demo, dependency, evaluate, explain, explore, list_, new, repair, report, train
from unskew.cli.app import app, main

__all__ = [
    "app",
    "audit",
    "bench",
    "data",
    "demo",
    "dependency",
    "evaluate",
    "explain",
    "explore",
    "list_",
    "main",
    "new",
    "repair",
    "report",
    "train",
]
