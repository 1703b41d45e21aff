"""The SSH adapter against a real OpenSSH server and against scripted ones."""
