"""What kubelets and container runtimes are like. Values in, values out."""
