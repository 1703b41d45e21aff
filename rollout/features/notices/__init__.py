"""What people are told of a run while they do not watch it, delivered by apprise."""
