"""What an operator asks for: topics, groups, transactions, checks of a warehouse."""
