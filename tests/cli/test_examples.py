"""Every verb's help ends with examples, whose verbs and options exist; the shell can complete verbs."""

import os
import subprocess
import sys

import pytest
import typer

from unskew.cli import app

GROUP = typer.main.get_command(app)


@pytest.mark.parametrize("verb", sorted(GROUP.commands))
def test_the_examples_of_a_verb_could_be_typed(verb):
    command = GROUP.commands[verb]
    head, *lines = command.epilog.split("\n\n")
    assert head == "Examples:"
    assert lines
    known = {name for parameter in command.params for name in parameter.opts}
    for line in lines:
        program, named, *words = line.split()
        assert (program, named) == ("unskew", verb)
        assert {word for word in words if word.startswith("--")} <= known, line


def test_a_shell_completes_verbs():
    asked = {"_UNSKEW_COMPLETE": "complete_bash", "COMP_WORDS": "unskew ev", "COMP_CWORD": "1"}
    words = [sys.executable, "-c", "import sys; sys.argv = ['unskew']; from unskew.cli import main; main()"]
    done = subprocess.run(words, env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout.split() == ["evaluate"], done.stderr
