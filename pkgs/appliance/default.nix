# The appliance's own wheel, built from this repository by its own build backend and unpacked as the others are.
{
  stdenvNoCC,
  python312,
  binutils,
  environment,
  wheels,
}:
let
  builder = environment {
    name = "appliance-build-environment";
    wheels = [
      wheels.build
      wheels.pyproject-hooks
      wheels.packaging
      wheels.setuptools
    ];
  };

  root = ../..;
  relative = path: builtins.substring (builtins.stringLength (toString root) + 1) (-1) path;
  src = builtins.path {
    name = "appliance-source";
    path = root;
    filter =
      path: _:
      builtins.match "(appliance(/.*)?|pyproject\\.toml|README\\.md)" (relative path) != null
      && builtins.match ".*(__pycache__|\\.egg-info).*" path == null;
  };
in
stdenvNoCC.mkDerivation {
  name = "appliance";
  inherit src;
  nativeBuildInputs = [
    python312
    binutils
  ];
  PYTHONHASHSEED = "0";
  buildCommand = ''
    cp -r "$src" source
    chmod -R u+w source
    ${builder}/bin/python -m build --wheel --no-isolation --outdir . source
    mkdir -p $out
    src=$(echo "$PWD"/*.whl) interpreter= libraries= python3.12 -W ignore ${../wheels/unpack.py}
  '';
}
