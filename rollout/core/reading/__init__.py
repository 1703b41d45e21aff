"""Reads inventories, playbooks and templates. All mistakes are reported at once, with file, line and column."""
