"""One node as planning sees it: how its kubelet is started, from which files, and whether it is fit to be changed."""
