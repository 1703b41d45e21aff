"""A node's measurements after its change, compared with the expected values: PASS, FAIL or UNKNOWN."""
