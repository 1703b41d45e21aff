"""Reads the files that people write: inventories, playbooks, templates. Every mistake is reported at once, with file, line and column."""
