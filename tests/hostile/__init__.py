"""Hostile input from outside: files, answers, nodes, other people on the same machine."""
