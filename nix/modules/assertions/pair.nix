# What prefill and decode must have alike, or the KV cache that arrives is not the one that was sent.
{ config, lib, ... }:
let
  cfg = config.services.sglang-appliance;
  claims = import ../../lib/claims.nix { inherit lib; };
  ofRole = role: lib.filterAttrs (_: worker: worker.role == role) cfg.workers;
  setting = name: worker: worker.effectiveSettings.${name} or null;
  show = value: if value == null then "not set" else builtins.toJSON value;

  compared = {
    tpSize = {
      of = worker: worker.tpSize;
      why = "window and index state has no place on unlike ranks (llm-d#2427)";
    };
    "environment.SGLANG_OPT_SM120_DIRECT_SWA_KV" = {
      of = worker: worker.effectiveEnvironment.SGLANG_OPT_SM120_DIRECT_SWA_KV or null;
      why = "it is a layout of the window pool";
    };
  }
  // lib.mapAttrs' (name: why: lib.nameValuePair "settings.${name}" { inherit why; of = setting name; }) {
    attention-backend = "the layout of a token's cache differs between backends (sgl#37838)";
    prefill-attention-backend = "the layout of a token's cache differs between backends (sgl#37838)";
    decode-attention-backend = "the layout of a token's cache differs between backends (sgl#37838)";
    disaggregation-transfer-backend = "both ends speak one protocol";
    kv-cache-dtype = "the handshake refuses unlike types";
    page-size = "the handshake refuses unlike pages (llm-d#2500)";
  };

  # every worker is compared with the first prefill worker
  prefillName = lib.head (lib.attrNames (ofRole "prefill"));
  others = removeAttrs (ofRole "prefill" // ofRole "decode") [ prefillName ];
  unlike =
    option:
    { of, why }:
    lib.mapAttrsToList (
      name: worker:
      "workers.${prefillName}.${option} is ${show (of cfg.workers.${prefillName})}, workers.${name}.${option} is ${show (of worker)}; expected the same: ${why}"
    ) (lib.filterAttrs (_: worker: of worker != of cfg.workers.${prefillName}) others);

  speculates = worker: setting "speculative-algorithm" worker != null;
  draftsAlone = lib.attrNames (lib.filterAttrs (_: speculates) (ofRole "prefill"));
  plainDecoders = lib.attrNames (lib.filterAttrs (_: worker: !speculates worker) (ofRole "decode"));
  pair = ofRole "prefill" != { } && ofRole "decode" != { };
in
{
  assertions = lib.mkIf (cfg.enable && pair) (
    claims.refuse (
      lib.concatLists (lib.mapAttrsToList unlike compared)
      ++
        lib.optional (draftsAlone != [ ] && plainDecoders != [ ])
          "settings.speculative-algorithm is set for workers.${lib.head draftsAlone} and not for workers.${lib.head plainDecoders}; expected it on decode, or on both: NIXL refuses a decode worker with fewer KV regions than prefill"
    )
  );
}
