"""One file, one representation: what a shortcut could be read from."""
