"""The simulator: the real machine, driver and order over model nodes, on a clock that nobody waits for.

``node`` is a node with its agent, ``fleet`` the way there and back, ``journal`` what was durable, ``controller`` a process
that may die or freeze anywhere; ``scenario`` is drawn from a seed, ``play`` plays it out and asks every law after every event.
"""
