"""Named cases: the corners that people, and the kubelet's own source, point at; and each disagreement there ever was."""
