"""A run that was journaled with the current rules, and the final state of its replay."""
