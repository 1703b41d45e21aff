"""What comes in from outside and means harm: files, answers, nodes, other people on the same machine."""
