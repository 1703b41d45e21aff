"""What people see of a run: summary, view, report."""
