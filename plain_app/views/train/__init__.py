"""The page Train and its parts."""
