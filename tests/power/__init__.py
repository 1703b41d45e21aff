"""Power cuts of an emulated machine: its page cache, and everything only in it, is lost. ``make power``."""
