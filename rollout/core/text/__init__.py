"""Text in and out: YAML with places, splicing, nodesets, diffs, durations, JSON of values, what may reach a screen."""
