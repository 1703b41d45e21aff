"""Power cuts of a machine under emulation: its page cache, and all that only it has, is gone. ``make power``."""
