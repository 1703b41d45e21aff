"""The machine: state, events, commands, the one table, phases, capacity, budgets, laws; orders and the journal's codec."""
