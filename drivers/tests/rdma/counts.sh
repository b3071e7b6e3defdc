# What the device is asked for, per message, and memory that is unmapped between messages.
job "what the device is asked for" $verbs $count stream counts
job "memory that is unmapped between messages" $verbs stream moved
