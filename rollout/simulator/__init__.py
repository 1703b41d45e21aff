"""The simulator: the real machine, driver and order over model nodes, on a virtual clock.

``node`` is a node with its agent, ``fleet`` the network to the nodes, and ``journal`` the durable events. ``controller``
is a process that may die or freeze anywhere. ``scenario`` is drawn from a seed. ``play`` runs it and checks every law
after every event.
"""
