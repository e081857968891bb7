# A locked wheel. No host is named here: fetchPypi composes the address, and `mirror` (the address of a folder that has
# the files, https:// or file://) takes its place at a site without a way out. Both give the same store path.
{ fetchPypi, fetchurl, mirror }:
package:
let
  parts = builtins.match "([^-]+)-([^-]+)-([^-]+)-([^-]+)-([^-]+)\\.whl" package.file;
  part = builtins.elemAt parts;
  hash = builtins.convertHash {
    hash = package.sha256;
    hashAlgo = "sha256";
    toHashFormat = "sri";
  };
in
if mirror != "" then
  fetchurl
    {
      name = package.file;
      url = "${mirror}/${package.file}";
      inherit hash;
    }
else
  fetchPypi {
    format = "wheel";
    pname = part 0;
    version = part 1;
    dist = part 2;
    python = part 2;
    abi = part 3;
    platform = part 4;
    inherit hash;
  }
