//! Reads every source file and says where the house is untidy.
