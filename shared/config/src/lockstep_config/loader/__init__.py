"""The entry of the package: a configuration file is read, resolved and checked."""
