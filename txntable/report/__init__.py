"""A page that shows a warehouse: collected once, drawn without a network, written to a file or served on loopback."""
