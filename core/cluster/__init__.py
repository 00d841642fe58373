"""Coarse tasks, here or on a cluster: who runs them, and the arrays they share.

Knows nothing of what the tasks compute: their functions stand beside the algorithms in
`core.engine`. Loads dask only when a cluster is used.
"""
