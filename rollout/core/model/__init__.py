"""Values that every room knows: inventory, settings, playbook, snapshot, plan. No text, no files, no decisions."""
