"""Keys and values as MirrorMaker 2 and Kafka Connect write them, and the encodings that such formats use."""
