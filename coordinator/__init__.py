"""The state machines of the coordinators: pure, without I/O, clock or chance."""
