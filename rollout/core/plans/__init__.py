"""From snapshots and settings to a plan: groups, waves, estimates; the plan as a file, as text, as JSON."""
