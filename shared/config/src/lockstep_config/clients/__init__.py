"""Connections as our Kafka clients need them: librdkafka's settings, TLS, SASL, OAuth, AWS IAM."""
