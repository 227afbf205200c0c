"""One file, one built-in data set. The file name is the name of the set, with hyphens."""
