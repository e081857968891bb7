# What a systemd distribution with Nix gets of the appliance, in the places that NixOS has it: one store path with units,
# plan and package below etc/. `appliance deploy` runs it, keeps it, and goes back from it.
{ stdenvNoCC }:
{
  units, # text by name
  files ? { }, # text by path below etc/sglang-appliance, and plan.json among it
  package, # what has bin/appliance
  home ? "/var/lib/sglang-appliance", # of the user sglang
  tmpfiles ? [ ], # lines of tmpfiles.d
}:
let
  texts =
    builtins.listToAttrs (
      map (name: {
        name = "etc/systemd/system/${name}";
        value = units.${name};
      }) (builtins.attrNames units)
      ++ map (path: {
        name = "etc/sglang-appliance/${path}";
        value = files.${path};
      }) (builtins.attrNames files)
    )
    // {
      "etc/sysusers.d/sglang-appliance.conf" = "u sglang - \"SGLang appliance\" ${home}\n";
      "etc/tmpfiles.d/sglang-appliance.conf" = builtins.concatStringsSep "" (map (line: "${line}\n") tmpfiles);
    };
  paths = builtins.attrNames texts;
  variable = number: "text${toString number}";
  numbered = builtins.genList (number: {
    name = variable number;
    value = texts.${builtins.elemAt paths number};
  }) (builtins.length paths);
in
stdenvNoCC.mkDerivation (
  builtins.listToAttrs numbered
  // {
    name = "sglang-appliance-generation";
    # a unit of one generation reads the plan of that generation, whichever one the host boots into
    buildCommand = ''
      place() {
        mkdir -p "$(dirname "$out/$1")"
        printf '%s' "''${2//\/etc\/sglang-appliance\//$out/etc/sglang-appliance/}" > "$out/$1"
      }
      ${builtins.concatStringsSep "\n" (
        builtins.genList (
          number: "place '${builtins.elemAt paths number}' \"\$${variable number}\""
        ) (builtins.length paths)
      )}
      ln -s ${package} $out/etc/sglang-appliance/package
    '';
  }
)
