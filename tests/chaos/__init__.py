"""``make chaos``: the real command line on real systemd nodes, one fault at a random instant, and checks afterwards."""
