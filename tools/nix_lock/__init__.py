"""nix/lock/packages.json: the engine's whole closure, resolved by uv, written for Nix, checked offline."""
