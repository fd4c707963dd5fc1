"""Where a batch originated: the flow's producer ids, and those of other flows and clusters."""
