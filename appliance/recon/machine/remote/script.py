"""The script that a machine far away runs: POSIX shell and coreutils, nothing written, nothing left running.

Every record begins with a line of the run's marker, which nobody there can guess, so that no file's content can pass
for a record. Stages run side by side without a temporary file: each holds its own output until it is done, prints it,
and then passes on what the stages before it print. nvidia-smi comes first in that chain: where it hangs beyond any
signal, all other stages have printed already.
"""

import shlex

from appliance.recon.machine.manifest import (
    ANSWER_BYTES,
    ANSWERS,
    COMMANDS,
    DEFAULT_PORTS,
    LINES,
    LINKS,
    MODEL_ROOTS,
    PCI_CLASSES,
    PCI_LINES,
    PCI_TEXTS,
    PROCESS_FILES,
    PROCESS_NAMES,
    SPACES,
    TEXT_BYTES,
    TEXTS,
    TOGETHER,
)
from appliance.recon.machine.probes.storage import MOST_FOLDERS

STAGE_LIMIT_S = 20
VARIABLES = ["HOME", "HF_HOME", "HF_HUB_CACHE"]

FUNCTIONS = f"""
rec() {{ printf '\\n%s %s %s\\n' "$M" "$1" "$2"; }}
one() {{
  l=
  {{ IFS= read -r l < "$1" || [ -n "$l" ]; }} 2>/dev/null || return 1
  rec f "$1"; printf '%s\\n' "$l"
}}
txt() {{ [ -r "$1" ] || return 1; rec f "$1"; head -c {TEXT_BYTES} "$1" 2>/dev/null | tr '\\000' '\\n'; }}
lnk() {{ cd -P "$1" 2>/dev/null || return 1; rec l "$1"; pwd -P; cd /; }}
hex() {{ [ -r "$1" ] || return 1; rec x "$1"; od -An -v -tx1 "$1" 2>/dev/null; }}
dir() {{
  [ -d "$1" ] || return 1
  rec d "$1"
  stat -L -c '%s %f %n' -- "$1"/* 2>/dev/null
  for f in "$1"/*; do
    if [ -L "$f" ] && ! [ -e "$f" ]; then printf -- '- - %s\\n' "$f"; fi
  done
}}
cmd() {{
  n=$1; shift
  command -v "$1" >/dev/null 2>&1 || {{ rec r "$n 127"; return 1; }}
  rec c "$n"; "$@" 2>&1 </dev/null; rec r "$n $?"
}}
"""

MAIN = """
limited() {
  if command -v timeout >/dev/null 2>&1
  then timeout -k 2 %(limit)d sh -c "$1" </dev/null 2>/dev/null
  else sh -c "$1" </dev/null 2>/dev/null
  fi
}
stage() { A=$(limited "$F$2"); r=$?; printf '%%s\\n%%s s %%s %%s\\n' "$A" "$M" "$1" "$r"; }
main() {
  printf '\\n%%s begin 1\\n' "$M"
  %(chain)s
  printf '\\n%%s end 1\\n' "$M"
}
main
"""


def script(marker: str, model_roots: list[str]) -> str:
    """The script of one run, whose records begin with `marker`. `model_roots` are folders of models to look into."""
    stages = {f"commands {' '.join(names)}": commands(names) for names in TOGETHER}
    stages |= {
        "processes": processes(),
        "models": models(model_roots),
        "spaces": spaces(model_roots),
        "files": files(),
    }
    names = list(stages)
    chain = f'stage {shlex.quote(names[0])} "$S0"'
    for place, name in enumerate(names[1:], start=1):
        chain += f' |\n  {{ stage {shlex.quote(name)} "$S{place}"; cat; }}'
    head = f"LC_ALL=C; M={marker}; export LC_ALL M\nunset CDPATH ENV\nF={shlex.quote(FUNCTIONS)}\n"
    codes = "".join(f"S{place}={shlex.quote(stages[name])}\n" for place, name in enumerate(names))
    return head + codes + MAIN % {"limit": STAGE_LIMIT_S, "chain": chain}


def commands(names: list[str]) -> str:
    """A stage of commands, one after the other."""
    return "\n".join(f"cmd {name} {shlex.join(COMMANDS[name])}" for name in names)


def each(patterns: list[str], function: str) -> str:
    """Call `function` with every file that the shell patterns match."""
    return f'for f in {" ".join(patterns)}; do {function} "$f"; done'


def files() -> str:
    """The stage of files: everything of the manifest below /proc, /sys and /etc."""
    classes = "|".join(f"{code}*" for code in PCI_CLASSES)
    return f"""
{each(LINES, "one")}
{each(TEXTS, "txt")}
{each(LINKS, "lnk")}
rec n /sys/module
for f in /sys/module/*; do printf '%s\\n' "${{f##*/}}"; done
if [ -d /sys/kernel/iommu_groups ]; then rec n /sys/kernel/iommu_groups; fi
for d in /sys/bus/pci/devices/*; do
  one "$d/class" || continue
  case $l in {classes}) ;; *) continue ;; esac
  k=$l
  for n in {" ".join(PCI_LINES)}; do one "$d/$n"; done
  for n in {" ".join(PCI_TEXTS)}; do txt "$d/$n"; done
  lnk "$d"; lnk "$d/driver"; lnk "$d/iommu_group"
  case $k in 0x0604*) hex "$d/config" ;; esac
done
"""


def models(roots: list[str]) -> str:
    """The stage of model folders: names and sizes, and each config.json."""
    quoted = " ".join(map(shlex.quote, [*roots, *MODEL_ROOTS]))
    return f"""
{variables()}
for r in {quoted}; do
  dir "$r" || continue
  txt "$r/config.json"
  n=0
  for m in "$r"/*/; do
    m=${{m%/}}
    [ -f "$m/config.json" ] || continue
    n=$((n + 1)); [ $n -le {MOST_FOLDERS} ] || break
    dir "$m"; txt "$m/config.json"
  done
done
h=${{HF_HUB_CACHE:-${{HF_HOME:+$HF_HOME/hub}}}}
h=${{h:-${{HOME%/}}/.cache/huggingface/hub}}
dir "$h" && for m in "$h"/models--*; do
  dir "$m/blobs"
  dir "$m/snapshots" && for s in "$m/snapshots"/*; do dir "$s" && txt "$s/config.json"; done
done
"""


def variables() -> str:
    """Records of the variables that say where the account's caches are."""
    return "\n".join(f'if [ -n "${name}" ]; then rec v {name}; printf \'%s\\n\' "${name}"; fi' for name in VARIABLES)


def spaces(roots: list[str]) -> str:
    """The stage of file systems: size and free space of the folders that matter."""
    quoted = " ".join(map(shlex.quote, dict.fromkeys([*(path for path, _ in SPACES), *roots, *MODEL_ROOTS])))
    return f"""
h=${{HF_HUB_CACHE:-${{HF_HOME:+$HF_HOME/hub}}}}
h=${{h:-${{HOME%/}}/.cache/huggingface/hub}}
for p in {quoted} "$h"; do
  [ -d "$p" ] || continue
  lnk "$p"
  rec k "$p"; df -P -k -- "$p" 2>/dev/null | tail -n 1
done
"""


def processes() -> str:
    """The stage of engines: their arguments, environment and packages, and what they answer on loopback."""
    ports = "\n".join(f"    *{name}*) q={port} ;;" for name, port in DEFAULT_PORTS.items())
    return f"""
if [ -d /proc/self ]; then rec n /proc/1; fi
for p in /proc/[0-9]*; do
  l=
  {{ IFS= read -r l < "$p/comm"; }} 2>/dev/null || continue
  case $l in {"|".join(PROCESS_NAMES)}) ;; *) continue ;; esac
  a=$(tr '\\000' ' ' < "$p/cmdline" 2>/dev/null | head -c 65536)
  case $a in *sglang*|*vllm*|*smg*|*trtllm*|*tritonserver*) ;; *) continue ;; esac
  rec f "$p/comm"; printf '%s\\n' "$l"
  for n in {" ".join(PROCESS_FILES)}; do txt "$p/$n"; done
  case $a in
    *" --port "*) q=${{a#* --port }}; q=${{q%% *}} ;;
    *" --port="*) q=${{a#* --port=}}; q=${{q%% *}} ;;
{ports}
    *) q= ;;
  esac
  case $q in ''|*[!0-9]*) ;; *)
    command -v curl >/dev/null 2>&1 && for u in {" ".join(ANSWERS)}; do
      b=$(curl -q -s -f --noproxy '*' --max-time 3 "http://127.0.0.1:$q$u" </dev/null | head -c {ANSWER_BYTES})
      if [ -n "$b" ]; then rec h "$q $u"; printf '%s\\n' "$b"; break; fi
    done ;;
  esac
  e=${{a%% *}}
  case $e in */bin/*) ;; *) continue ;; esac
  for d in "${{e%/bin/*}}"/lib/python3*/site-packages "${{e%/bin/*}}"/lib/python3*/dist-packages; do
    if [ -d "$d" ]; then rec n "$d"; for i in "$d"/*.dist-info; do printf '%s\\n' "${{i##*/}}"; done; fi
  done
done
"""
