"""The kinds of gates, one package each, and their table."""
