# Things of which each may be claimed once: GPUs, ports.
{ lib }:
{
  # [{ what; by; }] -> one line for each `what` that is claimed more than once: format what [by ...]
  collisions =
    format: claims:
    let
      byWhat = lib.groupBy (claim: toString claim.what) claims;
      twice = lib.filterAttrs (_: group: lib.length group > 1) byWhat;
    in
    lib.mapAttrsToList (what: group: format what (map (claim: claim.by) group)) twice;

  # assertions that fail with each of the lines
  refuse = map (line: {
    assertion = false;
    message = "services.sglang-appliance: ${line}";
  });
}
