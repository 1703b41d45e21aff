"""Notices over apprise, to the addresses that the environment names. apprise is imported only where there are some."""
