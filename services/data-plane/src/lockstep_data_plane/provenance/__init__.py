"""The origins of batches: the flow's producer ids, and those of other flows and clusters."""
