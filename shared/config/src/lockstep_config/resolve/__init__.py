"""The line that counts among several, the check of each line, and what an unknown key was meant to be."""
