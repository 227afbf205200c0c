"""Folders of real photographs with one planted shortcut each, for `planted_photos`. Shares no code with the probes of an audit."""
