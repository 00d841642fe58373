"""What views ask: data sets, runs and their histories. The only users of the store."""
