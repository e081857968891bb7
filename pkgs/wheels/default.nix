# Every wheel of nix/lock/packages.json as a derivation of its own, by name: an upgrade copies what changed.
{
  lib,
  stdenvNoCC,
  stdenv,
  fetchPypi,
  python312,
  binutils,
  patchelf,
  zlib,
  numactl,
  rdma-core,
}:
let
  lock = builtins.fromJSON (builtins.readFile ../../nix/lock/packages.json);
  fetch = import ./fetch.nix { inherit fetchPypi; };

  # What manylinux wheels take from the system besides glibc, and the driver's libraries, where NixOS has them.
  libraries =
    lib.makeLibraryPath [
      stdenv.cc.cc.lib
      zlib
      numactl
      rdma-core
    ]
    + ":/run/opengl-driver/lib";

  wheel =
    package:
    stdenvNoCC.mkDerivation {
      name = "wheel-${package.name}-${package.version}";
      src = fetch package;
      nativeBuildInputs = [
        python312
        binutils
        patchelf
      ];
      inherit libraries;
      interpreter = stdenv.cc.bintools.dynamicLinker;
      PYTHONHASHSEED = "0"; # the order of sets in bytecode
      buildCommand = "python3.12 -W ignore ${./unpack.py}";
      passthru = { inherit package; };
    };

  named = package: {
    inherit (package) name;
    value = wheel package;
  };
in
builtins.listToAttrs (map named lock)
