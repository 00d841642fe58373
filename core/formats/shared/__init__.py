"""What several readers and writers share: roles of columns, guessing, limits, findings, tables."""
