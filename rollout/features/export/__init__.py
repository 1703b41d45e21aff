"""What other tools need so that they do not undo a change: patches for kubeadm."""
