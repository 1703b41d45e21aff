"""The embedded fleet: the nodes of an inventory, served over real SSH by one process that needs no root.

Each node is a tree of files; commands run under a real shell against stand-ins for systemctl and friends, and all
stand-ins talk to one state table (``machine``) in this process.
"""
