"""The requests of operators: verbs, scopes, and the records of the commands topic."""
