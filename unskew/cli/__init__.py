"""The command line, a file per verb: parse the words, make one call, print the result."""

from unskew.cli import (
    audit,
    auto,
    bench,
    data,
    demo,
    dependency,
    evaluate,
    explain,
    explore,
    export,
    list_,
    new,
    repair,
    report,
    train,
)
from unskew.cli.app import app, main

__all__ = [
    "app",
    "audit",
    "auto",
    "bench",
    "data",
    "demo",
    "dependency",
    "evaluate",
    "explain",
    "explore",
    "export",
    "list_",
    "main",
    "new",
    "repair",
    "report",
    "train",
]
