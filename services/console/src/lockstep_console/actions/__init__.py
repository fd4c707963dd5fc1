"""What operators ask for in the console: commands, decisions and switches, which go on in the background."""
