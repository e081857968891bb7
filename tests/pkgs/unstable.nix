# Never the same bits twice, on purpose.
{
  unstable = derivation {
    name = "unstable";
    system = "x86_64-linux";
    builder = "/bin/bash";
    args = [
      "-c"
      ''
        export PATH=/usr/bin:/bin
        mkdir -p $out/lib
        echo same > $out/same
        { echo "0123456789"; head -c 32 /dev/urandom; } > $out/lib/changes
      ''
    ];
  };
}
