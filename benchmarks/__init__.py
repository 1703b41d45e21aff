"""What commands take: each module measures one, and writes a table beside itself."""
