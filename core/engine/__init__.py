"""The engine: graphs, propagation, networks, and the training in which they take turns."""
