"""The API server, through a kubeconfig: looks only, and asks first whether it may.

A client of our own over ``adapters.http``: of the API three GETs and one POST are used, and the usual clients take 0.25
to 0.6 s to import, follow every kubeconfig into insecurity, and have no deadline for a whole answer.
"""
