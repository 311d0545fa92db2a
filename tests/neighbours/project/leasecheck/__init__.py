"""A consumer's own package, which happens to be called like something of leasecheck's."""

OWNER = "the consumer of leasecheck"
