# Programs are copied, since nvcc looks for the rest beside the file that it really is; everything else is linked.
for wheel in $wheels; do
    part=$wheel/lib/python3.12/site-packages/nvidia/cu13
    [ -d "$part" ] || continue
    for folder in bin nvvm; do
        [ ! -d "$part/$folder" ] || { mkdir -p "$out/$folder" && cp -r --no-preserve=ownership "$part/$folder/." "$out/$folder/"; chmod -R u+w "$out/$folder"; }
    done
    for folder in include lib; do
        [ ! -d "$part/$folder" ] || { mkdir -p "$out/$folder" && cp -rs --no-preserve=all "$part/$folder/." "$out/$folder/"; chmod -R u+w "$out/$folder"; }
    done
done
ln -s lib "$out/lib64"
# -lNAME looks for libNAME.so; the wheels have libNAME.so.13 alone
for library in "$out"/lib/lib*.so.*; do
    name=${library%%.so.*}.so
    [ -e "$name" ] || ln -s "$(basename "$library")" "$name"
done
