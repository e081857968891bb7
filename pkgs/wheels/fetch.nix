# A locked wheel. No host is named here: nixpkgs' fetchPypi composes the address, and a site without a way out has a
# server with files by hash, URL/sha256/HASH, in NIX_HASHED_MIRRORS of its Nix daemon (option `mirror.packages`).
{ fetchPypi }:
package:
let
  parts = builtins.match "([^-]+)-([^-]+)-([^-]+)-([^-]+)-([^-]+)\\.whl" package.file;
  part = builtins.elemAt parts;
in
fetchPypi {
  format = "wheel";
  pname = part 0;
  version = part 1;
  dist = part 2;
  python = part 2;
  abi = part 3;
  platform = part 4;
  inherit (package) sha256; # in hex, since that is how mirrors name files
}
