"""The colours charts share: readable on light and on dark, and told apart without red and green."""

SURE = "#3f8f90"  # likely true; adds confidence
DOUBTFUL = "#d08a3e"  # likely false; takes confidence away
NEUTRAL = "#8a8f98"  # neither, or not offered
