"""Settings that every node must have for as long as it exists, also one that joins later. The notes in the journal are of the kernel: status, page and metrics show them."""
