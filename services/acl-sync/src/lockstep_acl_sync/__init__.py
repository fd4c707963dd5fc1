"""The acl-sync service: it copies ACLs of topics to their remote topics."""
