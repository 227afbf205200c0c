"""The papers' networks, one file each, and an adapter for any other."""
