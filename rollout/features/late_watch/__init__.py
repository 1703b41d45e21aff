"""The gates of a run after its end, until the time ``watchFor`` of its playbook is over."""
