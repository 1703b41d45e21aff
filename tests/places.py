"""Where the project's own files are, whatever the folder of the test that asks."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout: rollout/, inventories/, playbooks/, templates/, docs/ stand in it."""
