"""The signatures beside a plan, and what checks them."""
