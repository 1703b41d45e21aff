"""A run as it was journaled by the present rules, and where its replay must end."""
