"""A fuzzer of the command line: hostile readers' input, settings, suites, tables, run folders, states and images.

`plans` draws a case with hypothesis, `build` writes it into a folder and gives the words of a command, `harness` runs the real entry
point on it in a process of its own, and `python -m tests.fuzz` (make fuzz N=2000) runs many and writes the table of docs/results/fuzz.md.
"""
