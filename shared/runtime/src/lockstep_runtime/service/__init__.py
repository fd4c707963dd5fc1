"""The process of a service: command line, start, pages, signals, end."""
