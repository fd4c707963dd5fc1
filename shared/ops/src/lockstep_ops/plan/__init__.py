"""Read what the plan of a flow has to know about its clusters."""
