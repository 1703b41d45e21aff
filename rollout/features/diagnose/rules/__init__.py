"""Findings from logs and events: readers make facts of lines, rules make findings of facts. No file, clock or network."""
