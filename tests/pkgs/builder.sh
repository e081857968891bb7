# What runs instead of nixpkgs' setup.sh: tools on the PATH, then buildCommand.
export PATH=/usr/bin:/bin
for input in ${nativeBuildInputs:-}; do PATH=$input/bin:$PATH; done
export HOME=/homeless-shelter SOURCE_DATE_EPOCH=315532800 TZ=UTC LC_ALL=C
eval "$buildCommand"
