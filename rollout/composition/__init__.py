"""Which adapter serves which port, and the use cases put together: what commands and pages are made from."""
