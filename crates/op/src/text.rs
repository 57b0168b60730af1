//! How a step reads in a printed plan and in an error.
