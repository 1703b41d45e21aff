"""The runs of the journal in a browser, live, and the notice of a controller that died."""
