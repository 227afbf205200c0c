"""The application: its commands, what they print, and the exit status."""

import errno
import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from unskew.core import registry
from unskew.core.files import dumps
from unskew.core.version import VERSION

app = typer.Typer(
    name="unskew",
    help="Find the shortcuts in a labelled data set, measure them, repair the data, and train models that do not take them.",
    no_args_is_help=True,
    add_completion=False,
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
    registry.from_here()


def show(value: dict[str, Any], json: bool, text: str) -> None:
    if os.environ.get("RANK", "0") != "0":
        return
    if json:
        text = dumps(value)
    print(text)


def stop(status: int, text: str) -> NoReturn:
    if os.environ.get("RANK", "0") == "0":
        print(f"unskew: {' '.join(text.split())}", file=sys.stderr)
    raise SystemExit(status)


def build_only(words: list[str]) -> None:
    """Leave the parser only the verb that was typed: making the options of all of them costs more than a list does."""
    named = [c for c in app.registered_commands if (c.name or getattr(c.callback, "__name__", "")) in words]
    app.registered_commands = named or app.registered_commands


def main() -> None:
    """Exit status 0: done; 2: the request or the input is wrong, with one line that says why; 1: anything else."""
    from unskew.core import progress
    from unskew.core.errors import UserError

    if os.environ.get("RANK", "0") == "0":
        progress.switch_on()
    try:
        build_only(sys.argv[1:2])
        status = app(standalone_mode=False)
        if isinstance(status, int) and status:  # some versions of typer return a number after an interrupt
            stop(status, "interrupted; run the same command again to resume" if status == 130 else "stopped")
    except UserError as error:
        stop(2, str(error))
    except KeyboardInterrupt:
        stop(130, "interrupted; run the same command again to resume")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        _stop_on_disk_trouble(error)
        raise
    except Exception as error:
        _stop_on_wrong_words(error)
        raise


def _stop_on_wrong_words(error: Exception) -> None:
    """Errors of the command-line parser, recognised by name and method: some versions of typer bring their own copy of click."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # type: ignore[attr-defined]
        raise SystemExit(2) from None
    if type(error).__name__ == "Abort":
        stop(130, "interrupted; run the same command again to resume")
    if hasattr(error, "format_message"):
        stop(2, f"{error.format_message()} See: unskew --help")


_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.ENOENT}


def _stop_on_disk_trouble(error: OSError) -> None:
    if error.errno in _FULL:
        stop(2, f"the disk is full ({error.strerror}); free some space and run the same command again")
    if error.errno in _FORBIDDEN:
        stop(2, f"{error.filename}: {error.strerror}; choose another place")
