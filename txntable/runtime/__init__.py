"""The machine: time, chance, threads and what a process is."""
