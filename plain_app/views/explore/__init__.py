"""The page Explore and its parts."""
