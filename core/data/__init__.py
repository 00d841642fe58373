"""Data sets: features, candidates, votes and truth; what is odd about them; made data and noise."""
