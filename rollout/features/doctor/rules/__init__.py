"""What doctor says of what was read: how to fix it, and what a worker near the nodes would do. Values in, values and text out."""
