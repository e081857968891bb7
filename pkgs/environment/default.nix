# Wheels as one Python environment, in the shape of a virtual environment: its python finds it by pyvenv.cfg.
{ stdenvNoCC, python312 }:
{
  name,
  wheels,
  leftOut ? [ ], # files of wheels, relative to them, that the environment does without
}:
stdenvNoCC.mkDerivation {
  inherit name wheels leftOut;
  nativeBuildInputs = [ python312 ];
  python = python312;
  buildCommand = "python3.12 ${./link.py}";
}
