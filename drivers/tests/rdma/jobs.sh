# MPI jobs over verbs.
job "ring over verbs" $verbs ring
job "one message over verbs and tcp" $mixed -genv NMAD_TRACE /tmp/t stream bytes 2
job "ring over verbs, encrypted" $verbs -genv NMAD_ENCRYPT on ring
job "messages over verbs and tcp, encrypted" $mixed -genv NMAD_ENCRYPT on stream bytes 2
nmad trace /tmp/t | grep -E 'PostChunk|Landed' | head -n 30
