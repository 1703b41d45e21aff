"""Owned settings: rules, words, use cases and commands."""
