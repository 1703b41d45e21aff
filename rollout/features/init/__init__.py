"""A new project of a kubeconfig, an Ansible inventory or names: what its nodes are is guessed, and each guess is printed."""
