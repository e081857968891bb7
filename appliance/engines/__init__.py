"""What belongs to one engine or one router alone: its arguments, health, identity and metrics."""
