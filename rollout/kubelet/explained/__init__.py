"""What ``rollout explain`` says: of a setting by its name, and of its value on one node.

Names, types, versions and twins come from the table that decides where a setting may be written
(``kubelet_fields.json``); ``words.json`` beside this file adds what people should know besides.
"""
