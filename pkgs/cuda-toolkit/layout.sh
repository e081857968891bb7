# Programs are copied, since nvcc looks for the rest beside the file that it really is; everything else is linked.
layout() { # FOLDER, cp's options
    local from=$part/$1 to=$out/$1
    [ -d "$from" ] || return 0
    mkdir -p "$to"
    cp -r "${@:2}" "$from/." "$to/"
    chmod -R u+w "$to"
}

for wheel in $wheels; do
    part=$wheel/lib/python3.12/site-packages/nvidia/cu13
    for folder in bin nvvm; do layout $folder --no-preserve=ownership; done
    for folder in include lib; do layout $folder --symbolic-link; done
done
ln -s lib "$out/lib64"

# -lNAME looks for libNAME.so; the wheels have libNAME.so.13 alone
for library in "$out"/lib/lib*.so.*; do
    name=${library%%.so.*}.so
    [ -e "$name" ] || ln -s "$(basename "$library")" "$name"
done

# glibc 2.42 (NixOS 26.05's) declares rsqrt and rsqrtf too, and that they do not throw: CUDA's own declarations, before
# 13.2, must then say the same. With an older glibc it makes no difference.
for header in "$out"/include/crt/math_functions.{h,hpp}; do
    sed -i -E \
        's/(rsqrt\((const )?double [ax]\)|rsqrtf\((const )?float [ax]\))/\1 noexcept(true)/' "$header"
done

"$out/bin/nvcc" --version # a patched program that does not start is better found now
