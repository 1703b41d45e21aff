"""The cause of trouble in logs, events and nodes, and the plan that fixes it; pulls ahead of time, which measure what it asks for."""
