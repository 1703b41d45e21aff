"""The API server, through a kubeconfig. Permissions are checked first.

Our own client over ``adapters.http``: few requests of the API are used. The usual clients take 0.25 to 0.6 s to
import, accept insecure kubeconfigs, and have no deadline for a whole answer.
"""
