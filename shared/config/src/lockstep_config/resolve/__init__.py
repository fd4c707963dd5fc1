"""Which of several lines counts, whether each is right, and what was meant by an unknown key."""
