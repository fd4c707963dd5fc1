"""The heartbeat service: it shows that each flow is alive."""
