"""Admin requests for topics, configs, ACLs, groups and offsets."""
