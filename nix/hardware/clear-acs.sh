# Clear ACS redirection on every PCI bridge: with it, traffic between GPUs goes up to the root complex and back, at half
# rate (NVIDIA/nccl#1999), or never arrives (r6k#15). On all bridges, since those below a switch count as well.
# It lasts until the next boot. Machines that give devices to virtual machines must not run this: ACS separates them.
set -eu
for bridge in $(lspci -D -n | awk '$2 ~ /^0604/ { print $1 }'); do
    # ACS control register: offset 6 of the extended capability; bridges without ACS have none
    before=$(setpci -s "$bridge" ECAP_ACS+6.w 2>/dev/null) || continue
    setpci -s "$bridge" ECAP_ACS+6.w=0000
    echo "$bridge: ACS control $before, now $(setpci -s "$bridge" ECAP_ACS+6.w)"
done
