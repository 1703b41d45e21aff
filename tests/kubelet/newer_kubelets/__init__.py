"""Results of kubelets 1.28 to 1.36 for the same configurations, recorded once; the tests compare ours with them."""
