"""mm2.properties read into one typed, frozen model."""
