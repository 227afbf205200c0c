"""The version of the package, in one place, and the commit it runs from."""

import subprocess
from pathlib import Path

VERSION = "0.2.0"


def commit() -> str:
    """The commit of the checkout that the package runs from; empty if the package is installed."""

    def git(*words: str) -> str | None:
        try:
            answer = subprocess.run(["git", "-C", str(here.parent), *words], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return answer.stdout.strip() if answer.returncode == 0 else None

    here = Path(__file__)
    # A package installed inside another project's checkout is not part of it.
    if git("ls-files", "--error-unmatch", here.name) is None or (head := git("rev-parse", "--short=12", "HEAD")) is None:
        return ""
    return f"{head}-changed" if git("status", "--porcelain", "--untracked-files=no", "--", str(here.parents[1])) else head
