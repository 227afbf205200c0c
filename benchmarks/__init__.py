"""Benchmarks, a file each: `make bench` lists them, `make bench NAME=...` runs one."""
