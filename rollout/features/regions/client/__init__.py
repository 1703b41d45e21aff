"""Regions on Dask: nodes are reached by workers that stand next to them. The extra ``dask`` has the library.

``scheduler`` imports Dask; ``worker`` is what runs on a worker; ``nodes`` decides which worker carries which verb.
"""
