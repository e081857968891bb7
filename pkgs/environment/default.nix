# Wheels as one Python environment, in the shape of a virtual environment: its python finds it by pyvenv.cfg.
{ stdenvNoCC, python312 }:
{ name, wheels }:
stdenvNoCC.mkDerivation {
  inherit name wheels;
  nativeBuildInputs = [ python312 ];
  python = python312;
  buildCommand = "python3.12 ${./link.py}";
}
