"""Connections in the form that Lockstep's Kafka clients need: librdkafka's settings, TLS, SASL, OAuth, AWS IAM."""
