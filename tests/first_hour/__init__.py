"""The first hour: from an empty Debian to a finished rollout on the lab, and to the plan of a fleet behind a bastion."""
