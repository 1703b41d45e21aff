"""No controller may change a cluster until it is unfrozen: the commands, and the mark on each node. The reference ``frozen`` and the note in the journal are of the kernel."""
