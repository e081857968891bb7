# Names of the wheels that `roots` need, themselves included. The lock's dependency lines are those that hold on the
# platform for the extras that somebody in the lock asks for, so their names alone are enough here.
wheels: roots:
let
  normalized = name: builtins.replaceStrings [ "_" "." ] [ "-" "-" ] (lower name);
  lower = builtins.replaceStrings
    [ "A" "B" "C" "D" "E" "F" "G" "H" "I" "J" "K" "L" "M" "N" "O" "P" "Q" "R" "S" "T" "U" "V" "W" "X" "Y" "Z" ]
    [ "a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k" "l" "m" "n" "o" "p" "q" "r" "s" "t" "u" "v" "w" "x" "y" "z" ];
  dependencyName = line: normalized (builtins.head (builtins.match "([A-Za-z0-9._-]+).*" line));
  item = name: { key = name; };
in
map (found: found.key) (builtins.genericClosure {
  startSet = map item roots;
  operator = found: map (line: item (dependencyName line)) wheels.${found.key}.package.dependencies;
})
