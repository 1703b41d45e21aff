"""The commands of the test fleet on loopback; the fleet itself is ``rollout.lab``."""
