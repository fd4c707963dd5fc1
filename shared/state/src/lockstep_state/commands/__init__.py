"""What an operator may ask for: verbs, scopes, and the records of the commands topic."""
