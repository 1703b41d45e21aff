"""Text in and out: YAML with places, splicing, nodesets, diffs, durations, JSON of values, text that is safe for a screen."""
