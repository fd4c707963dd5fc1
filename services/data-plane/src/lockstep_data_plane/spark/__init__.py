"""The one Spark session of a process: its settings, its JVM, and slots as its jobs."""
