"""The console: what the flows of a file are like, in a browser, and the decisions that they need."""
