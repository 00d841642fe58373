"""One module or folder per family of files, reading and writing side by side."""
