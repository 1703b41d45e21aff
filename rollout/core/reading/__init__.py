"""What people write, with file, line and column: inventories, playbooks, templates; every mistake at once."""
