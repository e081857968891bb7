"""What can be known to fail before anything is started."""
