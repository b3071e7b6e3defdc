//! Several hosts with unequal rails on one machine.
