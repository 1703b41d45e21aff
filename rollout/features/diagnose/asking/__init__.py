"""What is read of files, nodes and the API server, and whether a remedy helped."""
