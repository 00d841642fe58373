"""The page Data and its parts."""
