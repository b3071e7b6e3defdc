# Windows whose memory the network reaches. Ranks of one machine are kept from sharing memory.
apart="-genv NMAD_MPI_WINDOW network"
job "puts and gets over verbs" $verbs $count $apart windows ways
job "the same over verbs and tcp" $mixed $apart windows ways
job "targets that nobody helps" $verbs $apart -genv NMAD_PROGRESS off windows ways
# The device says that its atomics are for processors, too; nothing but it changes the words here.
ranks=3 job "atomics of the device" $verbs $count $apart -genv NMAD_PROGRESS off -genv VERBS_ATOMIC 2 windows atomics
ranks=3 job "atomics of the processor" $verbs $count $apart -genv VERBS_ATOMIC 1 windows atomics
