"""A checkpoint brought to this machine, from the hub or from another folder, and known again at the next start.

- DIR/COMMIT/...: the files of one revision
- DIR/COMMIT/.appliance-manifest.json: written last; every file was found to be what the hub lists
- DIR/COMMIT/.partial/...: files on their way; a later fetch goes on with them
- DIR/current: a link to the revision in use, switched on request only
"""
