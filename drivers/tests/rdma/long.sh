# 1 GiB by its hash, while queue pairs of both sides fail some twenty times.
job "queue pairs fail, tcp carries on" \
  $mixed $count -genv VERBS_FAIL_EVERY 1000 -genv NMAD_STATS 1 stream bytes 1024
