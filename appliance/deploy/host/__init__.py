"""The side of a deploy that runs on the host: it switches, looks, and goes back by itself, whoever is connected."""
