"""The engine of PLAIN Studio: data, graphs, propagation, training. Never imports the front end.

Importing `core` loads nothing heavy; torch and faiss are imported where they are first needed.
"""

__version__ = "0.1.0"
