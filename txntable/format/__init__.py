"""What is stored, as values: names, types, keys, paths, settings and policies.  Does no I/O."""
