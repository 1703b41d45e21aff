"""Connects adapters to ports, and combines use cases for commands and pages."""
