"""Known defects of kubelets, runtimes and their tools by exact patch: rows of ``table.toml``, and which of them a node has."""
