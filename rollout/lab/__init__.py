"""The embedded fleet: the nodes of an inventory, served over real SSH by one process that needs no root.

Each node is a tree of files. Commands run in a real shell with stand-ins for systemctl and similar tools. All stand-ins
use one state table (``machine``) in this process.
"""
