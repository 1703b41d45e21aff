"""What is measured of a node after its change, against what it should be: PASS, FAIL or UNKNOWN."""
