# The project's own CUDA kernels: the library, and the Python package that loads it.
{
  stdenv,
  cuda-compiler,
  architectures ? [
    "90a"
    "120a"
  ],
}:
stdenv.mkDerivation {
  name = "appliance-kernels";
  src = builtins.path {
    name = "appliance-kernels-source";
    path = ./.;
    filter = path: _: builtins.match ".*(\\.nix|\\.so|\\.log|__pycache__)" path == null;
  };
  CUDA_HOME = cuda-compiler;
  NVCC_CCBIN = "${stdenv.cc}/bin";
  ARCHS = toString architectures;
  buildCommand = ''
    site=$out/lib/python3.12/site-packages
    mkdir -p "$site"
    bash "$src/build.sh" "$TMPDIR/out"
    cp -r "$src/appliance_kernels" "$site/"
    chmod -R u+w "$site"
    cp "$TMPDIR/out/libappliance_kernels.so" "$site/appliance_kernels/"
  '';
}
