"""The names of intents: settings with a home that depends on the node's runtime (``runtimes.known.ROWS``)."""

DEADLINE = "imagePullProgressDeadline"
DOWNLOADS = "maxConcurrentDownloads"
MIRRORS = "registryMirrors"
INTENTS = (DEADLINE, DOWNLOADS, MIRRORS)

DEADLINE_FLAG = "--image-pull-progress-deadline"
"""The kubelet's flag for dockershim up to 1.23, and cri-dockerd's."""
