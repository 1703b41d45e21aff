"""An operator's own command on many nodes, and a shell on one."""
