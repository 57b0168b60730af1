//! `linux.resources`: normalised once, then turned into writes of v1 or v2 files.
