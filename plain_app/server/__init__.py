"""The server around the pages: its settings, who may come in, and the review desk's routes."""
