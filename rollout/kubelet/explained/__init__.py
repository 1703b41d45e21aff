"""The content of ``rollout explain``: a setting by its name, and its value on one node.

Names, types, versions and twins come from the table that defines where a setting may be written
(``kubelet_fields.json``); ``words.json`` beside this file adds purposes, traps and sources.
"""
