"""``python -m rollout.cli`` is ``rollout``."""

from rollout.cli.main import main

main()
