# What the device is asked for, per message, and memory that is unmapped between messages.
job "what the device is asked for" $verbs $count stream counts
job "memory that is unmapped between messages" $verbs stream moved
job "buffers can be read" $verbs $count -genv VERBS_TEXT "known secret" stream text
job "encrypted, buffers cannot be read" $verbs $count -genv NMAD_ENCRYPT on -genv VERBS_TEXT "known secret" stream text
