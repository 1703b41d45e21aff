"""What kubelets 1.28 to 1.36 said to the same configurations, recorded once; ours is compared with it on every run of the tests."""
