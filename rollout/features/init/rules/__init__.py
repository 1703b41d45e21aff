"""What a new project takes from its source: nodes, groups, roles and logins. Each guess, and what was left out, is told."""
