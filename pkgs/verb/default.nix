# One verb of the command line as a program of its own.
{
  stdenvNoCC,
  bash,
  package,
  name,
}:
stdenvNoCC.mkDerivation {
  name = "appliance-${name}";
  buildCommand = ''
    mkdir -p $out/bin
    printf '#!%s\nexec %s "$@"\n' ${bash}/bin/bash '${package}/bin/appliance ${name}' > $out/bin/${name}
    chmod +x $out/bin/${name}
  '';
}
