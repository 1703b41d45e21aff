"""A plan is approved by other people, with SSH signatures beside its file, before it may be applied."""
