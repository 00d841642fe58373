"""The page Tune and its parts."""
