"""What rollout can do beside plans and runs: a package for each feature, with all of it. They do not know one another."""
