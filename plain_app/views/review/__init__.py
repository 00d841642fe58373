"""The page Review and its parts."""
