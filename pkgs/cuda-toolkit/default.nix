# CUDA_HOME out of wheels, for the NVIDIA packages named in `parts`.
{ stdenvNoCC, wheels }:
{ name, parts }:
stdenvNoCC.mkDerivation {
  name = "${name}-${wheels.nvidia-cuda-nvcc.package.version}";
  wheels = map (part: wheels.${part}) parts;
  buildCommand = builtins.readFile ./layout.sh;
}
