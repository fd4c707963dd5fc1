"""What two Lockstep services must agree on: names, records, codec, policy, filters."""
