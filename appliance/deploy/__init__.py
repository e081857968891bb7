"""Deploy: bring a host to a plan, and back when the service that comes of it is ill."""
