# Input: section, round, library, case, microseconds. Prints a line for each case of `section`: the median over the
# rounds for each library, with the lowest and the highest, and the median of (best peer / first library) by round.

function sort(values, n,    i, j, v) {
  for (i = 2; i <= n; i++) {
    v = values[i]
    for (j = i - 1; j >= 1 && values[j] > v; j--) values[j + 1] = values[j]
    values[j + 1] = v
  }
}

function middle(values, n) {
  return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
}

$1 == section {
  if (!($3 in known_library)) { known_library[$3]; library[++libraries] = $3 }
  if (!($4 in known_case)) { known_case[$4]; name[++cases] = $4 }
  took[$3, $4, $2] = $5
  if ($2 > rounds) rounds = $2
}

# The median of a library for a case, with its spread; nothing if it did not run.
function cell(lib, what,    n, r, values) {
  n = 0
  for (r = 1; r <= rounds; r++) if ((lib, what, r) in took) values[++n] = took[lib, what, r]
  if (n == 0) return "-"
  sort(values, n)
  return sprintf("%s (%s..%s)", short(middle(values, n)), short(values[1]), short(values[n]))
}

function short(value) {
  return value < 10 ? sprintf("%.3f", value) : value < 1000 ? sprintf("%.1f", value) : sprintf("%.0f", value)
}

# How many times `lib` is faster than the best peer of the same round.
function ratio(lib, what,    n, r, k, best, values) {
  n = 0
  for (r = 1; r <= rounds; r++) {
    best = 0
    for (k = 1; k <= libraries; k++) {
      if (library[k] ~ /^ours:/ || !((library[k], what, r) in took)) continue
      if (best == 0 || took[library[k], what, r] < best) best = took[library[k], what, r]
    }
    if (best > 0 && (lib, what, r) in took) values[++n] = best / took[lib, what, r]
  }
  if (n == 0) return "-"
  sort(values, n)
  return sprintf("%.2f (%.2f..%.2f)", middle(values, n), values[1], values[n])
}

END {
  printf "%-34s", ""
  for (k = 1; k <= libraries; k++) {
    printf " %-26s", library[k]
    if (library[k] ~ /^ours:/) printf " %-20s", "times faster"
  }
  print ""
  for (c = 1; c <= cases; c++) {
    printf "%-34s", name[c]
    for (k = 1; k <= libraries; k++) {
      printf " %-26s", cell(library[k], name[c])
      if (library[k] ~ /^ours:/) printf " %-20s", ratio(library[k], name[c])
    }
    print ""
  }
}
