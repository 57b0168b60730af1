//! Conversions between the units of the configuration, v1 and v2.
