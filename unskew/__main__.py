import sys

# `python -m` puts the current folder first: a file of its name there would be run in place of a library. See SECURITY.md.
if not sys.flags.safe_path and len(sys.path) > 1:
    sys.path.append(sys.path.pop(0))

from unskew.cli import main

if __name__ == "__main__":
    main()
