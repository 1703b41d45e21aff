"""The files of a project, as texts."""
