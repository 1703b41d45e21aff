"""Facts about kubelets and container runtimes. Values in, values out."""
