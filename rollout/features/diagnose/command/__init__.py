"""``diagnose`` and ``prepull``."""
