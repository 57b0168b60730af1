//! System calls.
#![no_std]
