"""The examination of the whole path of a flow, from this machine to a record that arrives."""
