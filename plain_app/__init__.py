"""The front end of PLAIN Studio."""
