"""The logs of a topic: opened, created, evolved, cut."""
