# All packages of the project out of a nixpkgs: what flake.nix and its overlay hand on.
{ pkgs }:
let
  wheels = pkgs.callPackage ./wheels { };
  environment = pkgs.callPackage ./environment { };
  cudaHome = pkgs.callPackage ./cuda-toolkit { inherit wheels; };
  importsOf = pkgs.callPackage ./environment/imports.nix { };

  closure = import ./wheels/closure.nix wheels;
  dependencies = (builtins.fromTOML (builtins.readFile ../pyproject.toml)).project.dependencies;
  nvidia = builtins.filter (name: builtins.match "nvidia-.*" name != null) (
    builtins.attrNames wheels
  );
in
rec {
  inherit wheels environment;

  # What a compilation needs, without the libraries that only a running engine does.
  cuda-compiler = cudaHome {
    name = "cuda-compiler";
    parts = [
      "nvidia-cuda-cccl"
      "nvidia-cuda-crt"
      "nvidia-cuda-cuobjdump"
      "nvidia-cuda-nvcc"
      "nvidia-cuda-runtime"
      "nvidia-nvvm"
    ];
  };
  cuda-toolkit = cudaHome {
    name = "cuda-toolkit";
    parts = nvidia;
  };

  kernels = pkgs.callPackage ./kernels { inherit cuda-compiler; };
  appliance = pkgs.callPackage ./appliance { inherit environment wheels; };

  engine-environment = environment {
    name = "engine-environment";
    wheels = builtins.attrValues wheels ++ [
      appliance
      kernels
    ];
    # of flashinfer and torch-c-dlpack-ext, left over from their own builds, not alike
    leftOut = [ "lib/python3.12/site-packages/build_backend.py" ];
  };
  import-check = importsOf {
    environment = engine-environment;
    cudaHome = cuda-toolkit;
  };

  # The command line with nothing but its own dependencies: for a workstation that deploys.
  appliance-environment = environment {
    name = "appliance-environment";
    wheels = map (name: wheels.${name}) (closure dependencies) ++ [ appliance ];
  };

  sglang-appliance = pkgs.callPackage ./sglang-appliance { inherit cuda-toolkit engine-environment; };

  # A verb of the command line as a program, from a package that has bin/appliance.
  verb = package: name: pkgs.callPackage ./verb { inherit package name; };
  demo = verb sglang-appliance "demo";
}
