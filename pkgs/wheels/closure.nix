# Names of the wheels that the requirements `roots` need, those of the roots included. The lock's dependency lines are
# those that hold on the platform for the extras that somebody in the lock asks for, so their names alone do here.
wheels: roots:
let
  upper = [ "A" "B" "C" "D" "E" "F" "G" "H" "I" "J" "K" "L" "M" "N" "O" "P" "Q" "R" "S" "T" "U" "V" "W" "X" "Y" "Z" ];
  lower = [ "a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k" "l" "m" "n" "o" "p" "q" "r" "s" "t" "u" "v" "w" "x" "y" "z" ];
  normalized = builtins.replaceStrings (upper ++ [ "_" "." ]) (lower ++ [ "-" "-" ]);
  item = line: { key = normalized (builtins.head (builtins.match "([A-Za-z0-9._-]+).*" line)); };
in
map (found: found.key) (builtins.genericClosure {
  startSet = map item roots;
  operator = found: map item wheels.${found.key}.package.dependencies;
})
