"""The rules, by theme. Every Rule that a module here holds is in the catalogue: there is no list to edit."""
