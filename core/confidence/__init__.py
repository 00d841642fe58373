"""From predictions, votes and decisions to the probability that a candidate is true."""
