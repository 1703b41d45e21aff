"""Nodes are emptied before a change that their pods would not survive: rounds of evictions, and cordons with the mark of a run.

The kernel has what a run does around it, by the name of the journal: the states of a node and the times of rounds and cordons (``core/run/drains.py``),
what a plan foresees (``app/impact.py``), and what people read of a run.
"""
