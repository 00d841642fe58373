"""Pages: one folder per step, its `page.py` and the parts only that page has."""
