"""What people are shown of a run: summary, view, report."""
