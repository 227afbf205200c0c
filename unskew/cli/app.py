"""The application: its commands, what they print, and the exit status."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.core.files import dumps
from unskew.core.version import VERSION

app = typer.Typer(
    name="unskew",
    help="Find the shortcuts in a labelled data set, measure them, repair the data, and train models that do not take them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"unskew {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    _check_words(sys.argv[1:])
    registry.from_here()
    registry.only_these(registry.modules_in(sys.argv[1:]))  # nothing that a file names is imported; --trust lifts this


def _check_words(words: Sequence[str]) -> None:
    """Refuse a path that is not UTF-8, whatever the verb: pages and tables could not name it."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UserError(f"the word {word!a} is not UTF-8; rename the file or folder, or choose another --out") from None


def examples(*lines: str) -> str:
    """What stands below the options of a verb's help, a command to a line."""
    return "\n\n".join(["Examples:", *lines])


def show(value: dict[str, Any], json: bool, text: str) -> None:
    if os.environ.get("RANK", "0") != "0":
        return
    if json:
        text = dumps(value)
    print(text, flush=True)


def stop(status: int, text: str) -> NoReturn:
    if os.environ.get("RANK", "0") == "0":
        print(f"unskew: {' '.join(text.split())}", file=sys.stderr)
    raise SystemExit(status)


def build_only(words: list[str]) -> None:
    """Leave the parser only the verb that was typed: making the options of all of them costs more than a list does."""
    named = [c for c in app.registered_commands if (c.name or getattr(c.callback, "__name__", "")) in words]
    app.registered_commands = named or app.registered_commands


def main() -> None:
    """Exit status 0: done; 2: the request or the input is wrong; 1: anything else; 130: interrupted. One line says why."""
    from unskew.core import failures, progress

    # Before torch is imported. Threads that wait for each other by spinning make a command many times slower on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if os.environ.get("RANK", "0") == "0":
        progress.switch_on()
    failures.one_line_warnings()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a file name that is not UTF-8 must not stop the line that names it
            stream.reconfigure(errors="backslashreplace")
    try:
        build_only(sys.argv[1:2])
        status = app(standalone_mode=False)
        if isinstance(status, int) and status:  # some versions of typer return a number after an interrupt
            stop(status, failures.AGAIN if status == failures.INTERRUPTED else "stopped")
        sys.stdout.flush()  # so that a full disk behind it is noticed here
    except (SystemExit, GeneratorExit):
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except BaseException as error:  # also the panics of polars, which are no Exceptions
        _stop_on_wrong_words(error)
        failures.show_traceback(error)
        stop(*failures.describe(error))


def _stop_on_wrong_words(error: BaseException) -> None:
    """Errors of the command-line parser, recognised by name and method: some versions of typer bring their own copy of click."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # type: ignore[attr-defined]
        raise SystemExit(2) from None
    if type(error).__name__ == "Abort":
        stop(130, "interrupted; run the same command again to resume")
    if hasattr(error, "format_message"):
        stop(2, f"{error.format_message()} See: unskew --help")
