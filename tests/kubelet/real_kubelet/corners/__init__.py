"""Named cases: from typical mistakes, from the kubelet's source, and from every disagreement that was found."""
