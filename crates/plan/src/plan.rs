//! **Plan**: the ordered steps of a start.

use std::borrow::Cow;
use std::fmt;

use pipkin_op::{Actor, PlanOp};

use crate::cgroup::Write;

/// One step: an operation, who performs it, and where in config.json it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Who performs it.
    pub actor: Actor,
    /// A JSON pointer (RFC 6901) into config.json; empty for what every container gets.
    pub pointer: Cow<'static, str>,
    /// What is done.
    pub op: PlanOp,
}

/// The ordered steps of a start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps; the first is number 1.
    pub steps: Vec<Step>,
    /// How many descriptors they name.
    pub slots: u16,
    /// What the step `CgroupLimits` writes.
    pub limits: Vec<Write>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actor = match self.actor {
            Actor::Runtime => "runtime  ",
            Actor::Container => "container",
        };
        write!(f, "{actor} {}", self.op)?;
        if !self.pointer.is_empty() {
            write!(f, "  ({})", self.pointer)?;
        }
        Ok(())
    }
}

impl fmt::Display for Plan {
    /// One numbered line a step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:3} {step}", index + 1)?;
        }
        Ok(())
    }
}
