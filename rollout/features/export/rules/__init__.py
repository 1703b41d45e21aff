"""What changes want on nodes, for the tools that make new nodes, and the texts that a plan has for them."""
